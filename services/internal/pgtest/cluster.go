package pgtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// held keeps the write end of the cluster's standard input open. If it were garbage collected, the cluster would
// stop.
var held []io.Closer

// startCluster runs .ci/with-postgres with a command that prints the URL and waits for the end of its input. The
// input is a pipe from this program, so the cluster stops with the program, even when the program is killed.
func startCluster() (string, error) {
	script, err := findScript()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(script, "sh", "-c", `echo "$`+Env+`"; exec cat`)
	// stderr goes through a pipe: if the cluster inherited it, `go test` would wait for the cluster.
	var messages bytes.Buffer
	cmd.Stderr = &messages
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", script, err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = stdin.Close()
		err = cmd.Wait() // messages is complete after Wait
		return "", fmt.Errorf("%s: %v\n%s", script, err, messages.String())
	}
	held = append(held, stdin)
	return strings.TrimSpace(line), nil
}

// findScript finds .ci/with-postgres relative to this source file. If the build has trimmed the path, it searches
// above the working directory, which `go test` sets to the package directory.
func findScript() (string, error) {
	var starts []string
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	for _, dir := range starts {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			script := filepath.Join(dir, ".ci", "with-postgres")
			if info, err := os.Stat(script); err == nil && info.Mode().IsRegular() {
				return script, nil
			}
		}
	}
	return "", fmt.Errorf("%s is not set, and there is no .ci/with-postgres above %s", Env, strings.Join(starts, " or "))
}
