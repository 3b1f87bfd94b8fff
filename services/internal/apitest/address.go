package apitest

import (
	"net"
	"os"
	"sync"
	"testing"
)

// OwnHost is an address of this machine at which nobody else listens, for ports that are free for a moment: those of a
// process that is started or comes back. Tests listen at 127.0.0.1, where the system may give such a port to one that
// runs beside. Where only 127.0.0.1 leads here (not on Linux), it is that.
var OwnHost = sync.OnceValue(func() string {
	pid := os.Getpid()
	host := net.IPv4(127, byte(1+pid>>16&0x7f), byte(pid>>8), byte(pid)).String()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "127.0.0.1"
	}
	_ = listener.Close()
	return host
})

// FreeAddress is an address at OwnHost, with a port that was free a moment ago.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(OwnHost(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
