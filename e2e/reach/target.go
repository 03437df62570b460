package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Outcomes of a target.
const (
	// Answers: a connection was taken, or a reply came.
	answers = "answers"
	// Refused: the other end, or something on the way, said no at once.
	refused = "refused"
	// Silent: nothing came within the time.
	silent = "silent"
	// Unreachable: there is no way there.
	unreachable = "unreachable"
	// Forbidden: this process may not even try.
	forbidden = "forbidden"
)

// Report is what came of one target.
type report struct {
	Target  string `json:"target"`
	Outcome string `json:"outcome"`
	// Detail is the system's own word for it; empty for an answer.
	Detail string `json:"detail,omitempty"`
}

type target struct {
	text    string
	kind    string
	address string
}

func parse(text string) (target, error) {
	kind, address, found := strings.Cut(text, ":")
	if !found || address == "" {
		return target{}, fmt.Errorf("%q is not KIND:ADDRESS", text)
	}
	switch kind {
	case "tcp", "dns":
		if _, _, err := net.SplitHostPort(address); err != nil {
			return target{}, fmt.Errorf("%q: %w", text, err)
		}
	case "unix":
	default:
		return target{}, fmt.Errorf("%q: no kind %q: tcp, dns or unix", text, kind)
	}
	return target{text, kind, address}, nil
}

func (t target) ask(within time.Duration) report {
	err := t.try(within)
	told := report{Target: t.text, Outcome: outcome(err)}
	if err != nil {
		told.Detail = err.Error()
	}
	return told
}

func (t target) try(within time.Duration) error {
	network := map[string]string{"tcp": "tcp", "dns": "udp", "unix": "unix"}[t.kind]
	connection, err := net.DialTimeout(network, t.address, within)
	if err != nil {
		return err
	}
	defer connection.Close()
	if t.kind != "dns" {
		return nil
	}
	if err := connection.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := connection.Write(question("kubernetes.default.svc.cluster.local")); err != nil {
		return err
	}
	_, err = connection.Read(make([]byte, 512))
	return err
}

// Question asks for the IPv4 addresses of a name (RFC 1035, section 4).
func question(name string) []byte {
	message := binary.BigEndian.AppendUint16(nil, 0x6d72)
	// Recursion desired; one question and nothing else.
	for _, word := range []uint16{0x0100, 1, 0, 0, 0} {
		message = binary.BigEndian.AppendUint16(message, word)
	}
	for label := range strings.SplitSeq(name, ".") {
		message = append(message, byte(len(label)))
		message = append(message, label...)
	}
	// The root, type A, class IN.
	return append(message, 0, 0, 1, 0, 1)
}

func outcome(err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return answers
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, os.ErrNotExist):
		return refused
	case errors.Is(err, os.ErrPermission):
		return forbidden
	case errors.As(err, &timeout) && timeout.Timeout():
		return silent
	default:
		return unreachable
	}
}
