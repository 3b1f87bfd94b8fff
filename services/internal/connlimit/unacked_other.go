//go:build !linux

package connlimit

import (
	"net"
	"time"
)

func limitUnacked(*net.TCPConn, time.Duration) {}
