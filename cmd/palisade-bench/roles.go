package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

// The roles of a child process, which are hidden subcommands.
const (
	rolePalisade = "child-palisade"
	roleBare     = "child-bare"
	rolePlain    = "child-plain"
)

// Requests of the parent.
const (
	askCPU        = "cpu"
	askProfile    = "profile" // and the file
	askProfileEnd = "profile-end"
)

const (
	// childEnv holds a child's settings.
	childEnv = "PALISADE_BENCH_CHILD"
	// deployment is the one that the server creates.
	deployment = "bench"
)

// childSettings are what a child needs to know; each role looks at its own part.
type childSettings struct {
	Data     string    `json:"data"`
	Database string    `json:"database"`
	Token    string    `json:"token"`
	Page     string    `json:"page"` // file with the bytes that the bare handler writes
	Query    pageQuery `json:"query"`
	// AddressSpace ends a child that takes more memory, in bytes; 0 means no limit.
	AddressSpace uint64 `json:"addressSpace,omitempty"`
	// Egress are the hosts that the server may call, Model the URL of a model.
	Egress string `json:"egress,omitempty"`
	Model  string `json:"model,omitempty"`
	// Limited keeps the rate limit.
	Limited bool `json:"limited,omitempty"`
}

// usage answers a request of the parent.
type usage struct {
	CPU   time.Duration `json:"cpu"`
	Error string        `json:"error,omitempty"`
}

// serving is what a role runs.
type serving struct {
	http, grpc string // addresses
	stop       func() error
}

func newChildCommands() []*cobra.Command {
	roles := map[string]func(context.Context, childSettings) (serving, error){
		rolePalisade: servePalisade, roleBare: serveBare, rolePlain: servePlain,
	}
	var list []*cobra.Command
	for role, serve := range roles {
		list = append(list, &cobra.Command{
			Use: role, Hidden: true, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return runChild(cmd.Context(), serve) },
		})
	}
	return list
}

// runChild serves until stdin ends. A terminal's interrupt reaches the whole process group; only the parent acts on it.
func runChild(ctx context.Context, serve func(context.Context, childSettings) (serving, error)) error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	answers := json.NewEncoder(os.Stdout)
	var settings childSettings
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &settings); err != nil {
		return fmt.Errorf("%s: this subcommand is for the program itself: %w", childEnv, err)
	}
	if limit := settings.AddressSpace; limit > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	running, err := serve(context.WithoutCancel(ctx), settings)
	if err != nil {
		return answers.Encode(readiness{Error: err.Error()})
	}
	if err := answers.Encode(readiness{HTTP: running.http, GRPC: running.grpc}); err != nil {
		return err
	}
	var profile *os.File
	requests := bufio.NewScanner(os.Stdin)
	for requests.Scan() {
		if profile, err = answer(requests.Text(), profile); err != nil {
			err = answers.Encode(usage{Error: err.Error()})
		} else {
			err = answers.Encode(usage{CPU: cpuTime()})
		}
		if err != nil {
			return err
		}
	}
	return running.stop()
}

// answer carries a request out and returns the profile that is being written now.
func answer(request string, profile *os.File) (*os.File, error) {
	verb, argument, _ := strings.Cut(request, " ")
	switch verb {
	case askCPU:
		return profile, nil
	case askProfile:
		file, err := os.Create(argument)
		if err != nil {
			return profile, err
		}
		return file, pprof.StartCPUProfile(file)
	case askProfileEnd:
		pprof.StopCPUProfile()
		return nil, errors.Join(profile.Close(), writeAllocations(profile.Name()+".allocs"))
	}
	return profile, fmt.Errorf("unknown request %s", strconv.Quote(request))
}

// writeAllocations writes what was allocated since the process began; go tool pprof -diff_base takes two such files
// apart.
func writeAllocations(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// cpuTime is what this process has used, in user and kernel mode.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // the kernel refuses only arguments that are wrong
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// logFile is where a server of the bench logs to, beside its data, as to the file of a service manager.
const logFile = "palisade.log"

// serverLog is such a file. Errors are shown, too: the file goes with the directory.
type serverLog struct{ file *os.File }

// Write takes whole lines.
func (l serverLog) Write(p []byte) (int, error) {
	if failed := []byte(" level=ERROR "); bytes.Contains(p, failed) {
		for line := range bytes.Lines(p) {
			if bytes.Contains(line, failed) {
				_, _ = os.Stderr.Write(line) // the file has it, too
			}
		}
	}
	return l.file.Write(p)
}

// servePalisade runs the server as it is shipped, its log included; most measurements need it without the rate limit.
func servePalisade(ctx context.Context, s childSettings) (serving, error) {
	cfg := config.Default()
	cfg.HTTP, cfg.GRPC, cfg.Metrics = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.Data, cfg.Database = s.Data, s.Database
	cfg.Deployment, cfg.BootstrapToken = deployment, s.Token
	cfg.EgressAllow, cfg.AIURL = s.Egress, s.Model
	if s.Model != "" {
		cfg.AIModel = "bench"
	}
	if !s.Limited {
		cfg.RateLimit = 0
	}
	file, err := os.OpenFile(filepath.Join(s.Data, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return serving{}, err
	}
	server, err := services.Start(ctx, cfg, serverLog{file})
	if err != nil {
		return serving{}, errors.Join(err, file.Close())
	}
	go server.ReleaseMemoryWhenIdle(ctx)
	addresses := server.Addresses()
	return serving{http: addresses.HTTP, grpc: addresses.GRPC, stop: func() error {
		server.Stop()
		return errors.Join(server.Wait(), file.Close())
	}}, nil
}

// serveBare writes the same bytes to whoever asks: what HTTP itself costs.
func serveBare(ctx context.Context, s childSettings) (serving, error) {
	page, err := os.ReadFile(s.Page)
	if err != nil {
		return serving{}, err
	}
	length := []string{strconv.Itoa(len(page))}
	return serveHandler(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = length
		_, _ = w.Write(page) // the client counts what it gets
	}))
}

func serveHandler(ctx context.Context, handler http.Handler) (serving, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return serving{}, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close, and whoever asks a dead server sees it
	return serving{http: listener.Addr().String(), stop: server.Close}, nil
}
