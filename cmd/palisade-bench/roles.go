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

// Roles of a child process: hidden subcommands.
const (
	rolePalisade = "child-palisade"
	roleBare     = "child-bare"
	rolePlain    = "child-plain"
)

// Requests of the parent.
const (
	askCPU        = "cpu"
	askProfile    = "profile" // followed by the file
	askProfileEnd = "profile-end"
)

const (
	// childEnv contains the settings of a child.
	childEnv = "PALISADE_BENCH_CHILD"
	// deployment is the deployment that the server creates.
	deployment = "bench"
)

// childSettings are the settings of a child; each role reads its own part.
type childSettings struct {
	Data     string    `json:"data"`
	Database string    `json:"database"`
	Token    string    `json:"token"`
	Page     string    `json:"page"` // file with the response of the bare handler
	Query    pageQuery `json:"query"`
	// AddressSpace limits the address space of a child in bytes; 0 means no limit.
	AddressSpace uint64 `json:"addressSpace,omitempty"`
	// Egress are the hosts that the server may call, Model the URL of a model.
	Egress string `json:"egress,omitempty"`
	Model  string `json:"model,omitempty"`
	// Limited enables the rate limit.
	Limited bool `json:"limited,omitempty"`
}

// usage is the response to a request of the parent.
type usage struct {
	CPU   time.Duration `json:"cpu"`
	Error string        `json:"error,omitempty"`
}

// serving is a running role.
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

// runChild serves until stdin closes. A terminal's interrupt reaches the whole process group; only the parent handles
// it.
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

// answer executes a request and returns the profile in progress.
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

// writeAllocations writes all allocations since the start of the process; go tool pprof -diff_base subtracts two such
// files.
func writeAllocations(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}

// cpuTime returns the user and system time of this process.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0 // the kernel only rejects invalid arguments
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// logFile is the log file of a benchmarked server, next to its data.
const logFile = "palisade.log"

// serverLog is a log file. Errors are also printed, because the file is removed with its directory.
type serverLog struct{ file *os.File }

// Write gets whole lines.
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

// servePalisade runs the server as shipped, including its log; most measurements disable the rate limit.
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

// serveBare writes the same bytes to every caller: the cost of HTTP itself.
func serveBare(ctx context.Context, s childSettings) (serving, error) {
	page, err := os.ReadFile(s.Page)
	if err != nil {
		return serving{}, err
	}
	length := []string{strconv.Itoa(len(page))}
	return serveHandler(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = length
		_, _ = w.Write(page) // the client checks the size
	}))
}

func serveHandler(ctx context.Context, handler http.Handler) (serving, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return serving{}, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close; a client of a dead server gets an error
	return serving{http: listener.Addr().String(), stop: server.Close}, nil
}
