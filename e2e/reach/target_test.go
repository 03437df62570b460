package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

const within = 2 * time.Second

func ask(t *testing.T, text string, within time.Duration) string {
	t.Helper()
	target, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return target.ask(within).Outcome
}

func TestAListenerAnswersUntilItIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for _, c := range []struct{ network, address, kind string }{
		{"tcp", "127.0.0.1:0", "tcp"},
		{"unix", path, "unix"},
	} {
		listener, err := net.Listen(c.network, c.address)
		if err != nil {
			t.Fatal(err)
		}
		text := c.kind + ":" + listener.Addr().String()
		if got := ask(t, text, within); got != answers {
			t.Errorf("%s: %s, want %s", text, got, answers)
		}
		listener.Close()
		if got := ask(t, text, within); got != refused {
			t.Errorf("%s, closed: %s, want %s", text, got, refused)
		}
	}
}

func TestAQuestionIsAnsweredOrNot(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	text := "dns:" + server.LocalAddr().String()
	if got := ask(t, text, 50*time.Millisecond); got != silent {
		t.Errorf("%s without a reply: %s, want %s", text, got, silent)
	}
	go func() {
		message := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(message)
			if err != nil {
				return
			}
			// Nobody is left to tell when it fails; the one who asked times out.
			_, _ = server.WriteTo(message[:n], from)
		}
	}()
	if got := ask(t, text, within); got != answers {
		t.Errorf("%s: %s, want %s", text, got, answers)
	}
}

func TestAQuestionIsWellFormed(t *testing.T) {
	want := "mr\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x02bc\x00\x00\x01\x00\x01"
	if got := string(question("a.bc")); got != want {
		t.Errorf("question = %q, want %q", got, want)
	}
}

func TestWhatIsNoTargetIsSaid(t *testing.T) {
	for _, text := range []string{"", "tcp", "tcp:", "tcp:127.0.0.1", "icmp:127.0.0.1:1", "127.0.0.1:80"} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q was understood", text)
		}
	}
}
