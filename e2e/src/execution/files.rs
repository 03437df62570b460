//! The ten calls on files, each in the fewest words.

use mooring_proto::v1::{
    ByteRange, CopyRequest, DirectoryEntry, EditRequest, EditResponse, GlobRequest, GrepMatch, GrepRequest,
    ListDirectoryRequest, MoveRequest, ReadRequest, RemoveRequest, StatRequest, StatResponse, TransferEnd,
    WriteHeader, WriteRequest, WriteResponse, read_request::Range,
};
use sha2::{Digest as _, Sha256};
use tonic::Status;

use super::Executor;

impl Executor {
    /// All bytes of a file, checked against the digest they were sent with.
    ///
    /// # Errors
    /// What the executor refuses it with; `data_loss` when the digest differs.
    pub async fn read(&self, path: &str) -> Result<Vec<u8>, Status> {
        let request = ReadRequest {
            context: Some(self.context()),
            path: path.to_owned(),
            range: Some(Range::Bytes(ByteRange { offset: 0, limit: 0 })),
        };
        let mut frames = self.files().read(request).await?.into_inner();
        let (mut content, mut end) = (Vec::new(), None);
        while let Some(frame) = frames.message().await? {
            content.extend_from_slice(&frame.content);
            end = frame.end.or(end);
        }
        match end {
            Some(end) if end.sha256 == Sha256::digest(&content)[..] => Ok(content),
            Some(_) | None => Err(Status::data_loss("the content is not what its digest says")),
        }
    }

    /// Writes a file of at most 1 MiB.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn write(&self, path: &str, content: &[u8]) -> Result<WriteResponse, Status> {
        let end = TransferEnd {
            total_bytes: content.len() as u64,
            sha256: Sha256::digest(content).to_vec().into(),
        };
        let header = WriteHeader { context: Some(self.context()), path: path.to_owned() };
        let frame = WriteRequest { header: Some(header), content: content.to_vec().into(), end: Some(end) };
        Ok(self.files().write(futures::stream::iter([frame])).await?.into_inner())
    }

    /// Replaces the one match of `old`.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn edit(&self, path: &str, old: &str, new: &str) -> Result<EditResponse, Status> {
        let request = EditRequest {
            context: Some(self.context()),
            path: path.to_owned(),
            old: old.as_bytes().to_vec().into(),
            new: new.as_bytes().to_vec().into(),
            replace_all: false,
        };
        Ok(self.files().edit(request).await?.into_inner())
    }

    /// Entries of a folder; the first thousand.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn list(&self, path: &str) -> Result<Vec<DirectoryEntry>, Status> {
        let request = ListDirectoryRequest {
            context: Some(self.context()),
            path: path.to_owned(),
            ..ListDirectoryRequest::default()
        };
        Ok(self.files().list_directory(request).await?.into_inner().entries)
    }

    /// Copies a file; gives its bytes.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn copy(&self, source: &str, destination: &str) -> Result<u64, Status> {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        let request = CopyRequest { context: Some(self.context()), source, destination };
        Ok(self.files().copy(request).await?.into_inner().size_bytes)
    }

    /// Moves a file or a folder.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn rename(&self, source: &str, destination: &str) -> Result<(), Status> {
        let (source, destination) = (source.to_owned(), destination.to_owned());
        let request = MoveRequest { context: Some(self.context()), source, destination };
        self.files().r#move(request).await.map(drop)
    }

    /// Removes a file or an empty folder.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn remove(&self, path: &str) -> Result<(), Status> {
        let request = RemoveRequest { context: Some(self.context()), path: path.to_owned() };
        self.files().remove(request).await.map(drop)
    }

    /// Lines that match; the first two hundred.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn grep(&self, pattern: &str, path: &str) -> Result<Vec<GrepMatch>, Status> {
        let request = GrepRequest {
            context: Some(self.context()),
            pattern: pattern.to_owned(),
            path: path.to_owned(),
            ..GrepRequest::default()
        };
        Ok(self.files().grep(request).await?.into_inner().matches)
    }

    /// Paths that match; the first thousand.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn glob(&self, pattern: &str) -> Result<Vec<String>, Status> {
        let request = GlobRequest {
            context: Some(self.context()),
            pattern: pattern.to_owned(),
            ..GlobRequest::default()
        };
        Ok(self.files().glob(request).await?.into_inner().paths)
    }

    /// What a path is.
    ///
    /// # Errors
    /// What the executor refuses it with.
    pub async fn stat(&self, path: &str) -> Result<StatResponse, Status> {
        let request = StatRequest { context: Some(self.context()), path: path.to_owned() };
        Ok(self.files().stat(request).await?.into_inner())
    }
}
