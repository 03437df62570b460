#!/bin/sh
# Generates both clients' code from the protocol: generate.sh PROTO, the folder `proto` of this repository.
# Needs Python 3 and Go; everything else is installed beside this file. What is generated is not committed.
set -eu
proto=$(cd "$1" && pwd)
cd "$(dirname "$0")"
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements.txt

files=""
options=""
for name in common file command workspace; do
    file=mooring/execution/v1/$name.proto
    files="$files $file"
    # The protocol belongs to no language, so the Go package is named here.
    options="$options --go_opt=M$file=mooring.dev/examples/client/execution"
    options="$options --go-grpc_opt=M$file=mooring.dev/examples/client/execution"
done

(cd go && go build -o ../.bin/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc)
module=mooring.dev/examples/client
# The lists are words without blanks.
# shellcheck disable=SC2086
.venv/bin/python -m grpc_tools.protoc --proto_path="$proto" \
    --python_out=python --grpc_python_out=python \
    --plugin=.bin/protoc-gen-go --plugin=.bin/protoc-gen-go-grpc \
    --go_out=go --go_opt=module=$module --go-grpc_out=go --go-grpc_opt=module=$module \
    $options $files
