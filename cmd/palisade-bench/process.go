package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// process reads the kernel's figures of a process. /proc exists only on Linux; elsewhere they are errors.
type process int

// pid returns the process of the child.
func (c *child) pid() process { return process(c.cmd.Process.Pid) }

// memory returns a field of /proc/PID/status in bytes: VmRSS is the current size, VmHWM the peak.
func (p process) memory(field string) (float64, error) {
	file := fmt.Sprintf("/proc/%d/status", int(p))
	status, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != field {
			continue
		}
		kilobytes, err := strconv.ParseFloat(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 64)
		return kilobytes * 1024, err
	}
	return 0, fmt.Errorf("%s has no %s", file, field)
}

// forgetPeak resets VmHWM.
func (p process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", int(p)), []byte("5"), 0)
}

// ticksPerSecond is USER_HZ, which is 100 on all platforms that Go supports.
const ticksPerSecond = 100

// cpu returns the CPU time of the process, in steps of 10 ms, without its children.
func (p process) cpu() (time.Duration, error) {
	file := fmt.Sprintf("/proc/%d/stat", int(p))
	stat, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may contain anything; user and system time are the 12th and 13th field after it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: got %d fields", file, len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
