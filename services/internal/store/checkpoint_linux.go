package store

import (
	"runtime"
	"syscall"
)

// atLowPriority runs fn on a thread of the lowest priority.
func atLowPriority(fn func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, and its priority, ends with the goroutine
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19)
		ended <- fn()
	}()
	return <-ended
}
