// Reads a file of a session's workspace and runs a command in it, through the gateway.
//
//	client ANSWER NAMESPACE/SESSION PATH PROGRAM [ARGUMENT...]
//
// ANSWER is the file with the API server's answer to an Exchange. The file's content and the command's output go to standard
// output and standard error; the exit code is the command's, 128 + n for a signal n, 125 for anything else.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	execution "mooring.dev/examples/client/execution"
)

const ownFailure = 125

// What the API server answers to an Exchange, as far as it is used here.
type answer struct {
	Status struct {
		Token   string `json:"token"`
		Gateway struct {
			URL                  string `json:"url"`
			ServerName           string `json:"serverName"`
			CertificateAuthority string `json:"certificateAuthority"`
		} `json:"gateway"`
	} `json:"status"`
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: client ANSWER NAMESPACE/SESSION PATH PROGRAM [ARGUMENT...]")
		os.Exit(ownFailure)
	}
	code, err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(ownFailure)
	}
	os.Exit(code)
}

func run(answerFile, session, path string, words []string) (int, error) {
	connection, token, err := connect(answerFile)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	// Whose call it is and which session is meant go with every call.
	ctx := metadata.AppendToOutgoingContext(context.Background(),
		"authorization", "Bearer "+token, "mooring-session", session)
	if err := read(ctx, execution.NewFileServiceClient(connection), path); err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return command(ctx, execution.NewCommandServiceClient(connection), words)
}

func connect(answerFile string) (*grpc.ClientConn, string, error) {
	text, err := os.ReadFile(answerFile)
	if err != nil {
		return nil, "", err
	}
	var found answer
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, "", err
	}
	gateway := found.Status.Gateway
	address, err := url.Parse(gateway.URL)
	if err != nil {
		return nil, "", err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(gateway.CertificateAuthority)) {
		return nil, "", errors.New("the answer has no certificate authority")
	}
	// The certificate's name holds whatever the address is.
	security := credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: gateway.ServerName})
	connection, err := grpc.NewClient(address.Host, grpc.WithTransportCredentials(security))
	return connection, found.Status.Token, err
}

func read(ctx context.Context, files execution.FileServiceClient, path string) error {
	// A range of bytes of no length is the whole file.
	request := &execution.ReadRequest{Path: path, Range: &execution.ReadRequest_Bytes{Bytes: &execution.ByteRange{}}}
	frames, err := files.Read(ctx, request)
	if err != nil {
		return err
	}
	for {
		frame, err := frames.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(frame.Content); err != nil {
			return err
		}
	}
}

func command(ctx context.Context, commands execution.CommandServiceClient, words []string) (int, error) {
	var arguments [][]byte
	for _, word := range words {
		arguments = append(arguments, []byte(word))
	}
	started, err := commands.Start(ctx, &execution.StartRequest{
		// Chosen by the caller: a call with the same id does not start the command again.
		Context: &execution.RequestContext{OperationId: rand.Text()},
		Program: &execution.StartRequest_Argv{Argv: &execution.ArgumentVector{Arguments: arguments}},
	})
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}
	events, err := commands.Attach(ctx, &execution.AttachRequest{CommandId: started.CommandId})
	if err != nil {
		return 0, fmt.Errorf("attach: %w", err)
	}
	for {
		message, err := events.Recv()
		if err != nil {
			// The command goes on: Attach again, from the offsets that were reached.
			return 0, fmt.Errorf("follow: %w", err)
		}
		if output := message.GetOutput(); output != nil {
			out := os.Stdout
			if output.Stream == execution.Stream_STREAM_STDERR {
				out = os.Stderr
			}
			if _, err := out.Write(output.Content); err != nil {
				return 0, err
			}
		}
		if end := message.GetEnd(); end != nil {
			return code(end)
		}
	}
}

func code(end *execution.CommandEnd) (int, error) {
	switch end := end.End.(type) {
	case *execution.CommandEnd_Exited:
		return int(end.Exited), nil
	case *execution.CommandEnd_Signalled:
		return 128 + int(end.Signalled), nil
	default:
		return 0, fmt.Errorf("the command ended otherwise: %T", end)
	}
}
