package connlimit

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not have.
const tcpUserTimeout = 18

// limitUnacked sets the option that grpc sets on connections that nothing wraps. A failure only means that the next
// ping notices a peer that has gone.
func limitUnacked(tcp *net.TCPConn, timeout time.Duration) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(timeout.Milliseconds()))
	})
}
