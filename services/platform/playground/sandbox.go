package playground

import (
	"context"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// inside is the directory of the job in the sandbox.
const inside = "/work"

// system are the directories of the machine that an engine may read, where they exist. None has data of Palisade.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/etc/alternatives", "/etc/ld.so.cache"}

// sandboxed returns a command that runs the engine in a sandbox of bubblewrap: without network, other processes and
// the server's environment, with a read-only view of the system, the engine's own directory and the job's. prlimit
// bounds its memory, processor time and files. When ctx ends, all its processes do.
func sandboxed(ctx context.Context, engine, job string, timeout time.Duration, arguments []string) (*exec.Cmd, error) {
	engine, err := filepath.EvalSymlinks(engine)
	if err != nil {
		return nil, NoSandboxError("there is no such file")
	}
	programs := map[string]string{"bwrap": "bubblewrap", "prlimit": "util-linux"}
	for program, where := range programs {
		if programs[program], err = exec.LookPath(program); err != nil {
			return nil, NoSandboxError("the sandbox needs " + program + ": install the package " + where)
		}
	}
	limits := []string{
		"--as=" + strconv.Itoa(maxMemory), "--cpu=" + strconv.Itoa(int(timeout.Seconds())+1), "--fsize=" + strconv.Itoa(maxFile),
		"--nofile=" + strconv.Itoa(maxFiles), "--core=0",
	}
	options := []string{"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"}
	for name, value := range map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"} {
		options = append(options, "--setenv", name, value)
	}
	options = append(options, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
	for _, dir := range system {
		options = append(options, "--ro-bind-try", dir, dir)
	}
	home := directory(engine)
	options = append(options, "--ro-bind", home, home, "--ro-bind", job, inside, "--chdir", "/tmp", engine)
	line := append(append(append(limits, "--", programs["bwrap"]), options...), arguments...)
	cmd := exec.CommandContext(ctx, programs["prlimit"], line...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// directory is the directory with the parts of an engine: the parent of a directory bin, as in a Python environment.
func directory(engine string) string {
	dir := filepath.Dir(engine)
	if parent := filepath.Dir(dir); filepath.Base(dir) == "bin" && parent != "/" {
		return parent
	}
	return dir
}

// Check returns why the executable cannot be an engine of a server with this data directory; empty if it can.
func Check(engine, data string) string {
	real, err := filepath.EvalSymlinks(engine)
	if err != nil {
		return "there is no such file"
	}
	if _, err := exec.LookPath(real); err != nil {
		return "it is not executable"
	}
	home := directory(real)
	if home == "/" {
		return "want a file in a directory of its own: the engine may read that directory"
	}
	if data, err = filepath.Abs(data); err == nil {
		if data, err = filepath.EvalSymlinks(data); err == nil && within(data, home) {
			return "the engine may read its own directory, and the data directory is in there: move one of them"
		}
	}
	return ""
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	inside, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(inside)
}
