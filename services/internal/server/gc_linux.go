package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// dropProgram tells the kernel to unmap the pages of the program file. A start touches nearly all of them, an idle
// server few. They stay in the page cache and are mapped again when touched.
func dropProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range unchangedMappings(bytes.NewReader(smaps), program) {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED); errno != 0 {
			errs = append(errs, errno)
		}
	}
	return errors.Join(errs...)
}

// mapping is an address range.
type mapping struct{ from, to uintptr }

// unchangedMappings returns the mappings of a file that can be dropped without loss, from /proc/PID/smaps. They are not
// writable, and none of their pages was copied, as by relocation or for a debugger's breakpoint.
func unchangedMappings(smaps io.Reader, file string) []mapping {
	var found []mapping
	candidate := false // the last element of found is the current mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if key, ok := strings.CutSuffix(fields[0], ":"); ok {
			if candidate && (key == "Anonymous" || key == "Swap") && fields[1] != "0" {
				found, candidate = found[:len(found)-1], false
			}
			continue
		}
		var m mapping
		_, err := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to)
		candidate = err == nil && !strings.Contains(fields[1], "w") && strings.HasSuffix(line, " "+file)
		if candidate {
			found = append(found, m)
		}
	}
	return found
}
