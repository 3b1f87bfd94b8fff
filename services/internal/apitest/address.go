package apitest

import (
	"net"
	"os"
	"sync"
	"testing"
)

// OwnHost returns a loopback address that no other program listens on, for ports that are free for a moment: ports
// of processes that start or restart. At 127.0.0.1 the system may give such a port to a parallel test. Outside
// Linux only 127.0.0.1 works, so it is used there.
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

// FreeAddress returns an address at OwnHost with a port that was just free.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(OwnHost(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
