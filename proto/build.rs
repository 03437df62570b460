//! Compiles the protocol with `protox`, so that no `protoc` has to be installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files =
        ["common", "file", "command", "workspace"].map(|name| format!("mooring/execution/v1/{name}.proto"));
    for file in &files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(&files, ["."])?;
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    Ok(())
}
