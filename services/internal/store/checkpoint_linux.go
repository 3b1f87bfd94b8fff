package store

import (
	"runtime"
	"syscall"
)

// unhurried runs fn on a thread of the lowest priority.
func unhurried(fn func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and its priority with it
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19)
		ended <- fn()
	}()
	return <-ended
}
