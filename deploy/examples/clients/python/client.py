"""Reads a file of a session's workspace and runs a command in it, through the gateway.

    client.py ANSWER NAMESPACE/SESSION PATH PROGRAM [ARGUMENT...]

ANSWER is the file with the API server's answer to an Exchange. The file's content and the command's output go to standard
output and standard error; the exit code is the command's, 128 + n for a signal n, 125 for anything else.
"""

import json
import sys
import urllib.parse
import uuid

import grpc

from mooring.execution.v1 import (
    command_pb2,
    command_pb2_grpc,
    common_pb2,
    file_pb2,
    file_pb2_grpc,
)

OWN_FAILURE = 125


def main(answer_file, session, path, *words):
    with open(answer_file, encoding="utf-8") as file:
        answer = json.load(file)["status"]
    # Whose call it is and which session is meant go with every call.
    metadata = [("authorization", f"Bearer {answer['token']}"), ("mooring-session", session)]
    with connect(answer["gateway"]) as channel:
        read(file_pb2_grpc.FileServiceStub(channel), metadata, path)
        return command(command_pb2_grpc.CommandServiceStub(channel), metadata, words)


def connect(gateway):
    security = grpc.ssl_channel_credentials(gateway["certificateAuthority"].encode())
    # The certificate's name holds whatever the address is.
    options = [("grpc.ssl_target_name_override", gateway["serverName"])]
    return grpc.secure_channel(urllib.parse.urlsplit(gateway["url"]).netloc, security, options)


def read(files, metadata, path):
    # A range of bytes of no length is the whole file.
    request = file_pb2.ReadRequest(path=path, bytes=file_pb2.ByteRange())
    for frame in files.Read(request, metadata=metadata):
        sys.stdout.buffer.write(frame.content)
    sys.stdout.buffer.flush()


def command(commands, metadata, words):
    # The operation id is chosen by the caller: a call with the same one does not start the command again.
    request = command_pb2.StartRequest(
        context=common_pb2.RequestContext(operation_id=uuid.uuid4().hex),
        argv=command_pb2.ArgumentVector(arguments=[word.encode() for word in words]),
    )
    started = commands.Start(request, metadata=metadata)
    request = command_pb2.AttachRequest(command_id=started.command_id)
    # A stream that breaks leaves the command as it is: Attach again, from the offsets that were reached.
    for event in commands.Attach(request, metadata=metadata):
        if event.WhichOneof("event") == "output":
            is_error = event.output.stream == command_pb2.STREAM_STDERR
            out = sys.stderr.buffer if is_error else sys.stdout.buffer
            out.write(event.output.content)
            out.flush()
        if event.WhichOneof("event") == "end":
            return code(event.end)
    raise RuntimeError("the stream ended before the command did")


def code(end):
    how = end.WhichOneof("end")
    if how == "exited":
        return end.exited
    if how == "signalled":
        return 128 + end.signalled
    raise RuntimeError(f"the command ended otherwise: {how}")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        print("usage: client.py ANSWER NAMESPACE/SESSION PATH PROGRAM [ARGUMENT...]", file=sys.stderr)
        sys.exit(OWN_FAILURE)
    try:
        sys.exit(main(*sys.argv[1:]))
    except grpc.RpcError as error:
        print(f"error: {error.code().name}: {error.details()}", file=sys.stderr)
        sys.exit(OWN_FAILURE)
    except (OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(OWN_FAILURE)
