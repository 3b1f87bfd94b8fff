package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// process is what the kernel tells of a process. There is /proc only on Linux; elsewhere its figures are errors.
type process int

// pid of the child.
func (c *child) pid() process { return process(c.cmd.Process.Pid) }

// memory is a field of /proc/PID/status in bytes: VmRSS now, VmHWM at its highest.
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

// forgetPeak makes VmHWM begin anew.
func (p process) forgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", int(p)), []byte("5"), 0)
}

// ticksPerSecond is USER_HZ, which is 100 on all machines that Go runs on.
const ticksPerSecond = 100

// cpu is the time that the process has used, in steps of 10 ms; its own children are not counted.
func (p process) cpu() (time.Duration, error) {
	file := fmt.Sprintf("/proc/%d/stat", int(p))
	stat, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything; user and system time are the 12th and 13th field behind it.
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
