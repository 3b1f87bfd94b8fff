// Package nolinks runs parts of tests as on a volume without hard links and modes of files.
package nolinks

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// Errors are what volumes without hard links answer to link.
var Errors = []syscall.Errno{syscall.EPERM, syscall.EOPNOTSUPP, syscall.ENOSYS}

// Constants of Linux that package syscall lacks.
const (
	setNoNewPrivileges = 38
	modeFilter         = 2
	returnError        = 0x00050000
	returnAllow        = 0x7fff0000
)

// Run calls do on a thread for which the kernel answers every link and every change of a mode with an error. Goroutines
// that do starts are not affected.
func Run(t *testing.T, answer syscall.Errno, do func() error) error {
	t.Helper()
	var refused, err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		if refused = refuse(answer); refused == nil {
			err = do()
		}
	}()
	<-done
	if refused != nil {
		t.Skip("the kernel has no filters of system calls: ", refused)
	}
	return err
}

// refuse filters the system calls of this thread (seccomp).
func refuse(answer syscall.Errno) error {
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return err
	}
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: 0}, // the number of the call
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: syscall.SYS_LINKAT, Jt: 1},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: syscall.SYS_FCHMODAT, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: returnError | uint32(answer)},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: returnAllow},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, modeFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0)
	if err != 0 {
		return err
	}
	return nil
}
