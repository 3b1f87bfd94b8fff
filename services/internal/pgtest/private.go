package pgtest

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// NewCluster starts a cluster for one test alone, which may break it, and returns the URL of its first database. It ends with the test.
func NewCluster(t testing.TB) (databaseURL string) {
	t.Helper()
	script, err := findScript()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script, "sh", "-c", `echo "$`+Env+`"; exec cat`)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, Env+"=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	var messages bytes.Buffer
	cmd.Stderr = &messages
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", script, err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // which ends it
		_ = cmd.Wait()    // how a cluster ends that a test has broken is of no interest
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, messages.String())
	}
	return strings.TrimSpace(line)
}
