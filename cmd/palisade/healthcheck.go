package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
)

// healthcheckTimeout bounds the one request.
const healthcheckTimeout = 5 * time.Second

func newHealthcheck(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the server on this machine whether it is ready",
		Long: `Ask the server on this machine, at its metrics port, whether it is ready to serve: for a container's
HEALTHCHECK, where there is no curl. The settings are those of serve.

Exit status 1 when the server answers that it is not ready, and says why; 2 when it does not answer.`,
		Example: `  palisade healthcheck
  PALISADE_METRICS=0.0.0.0:9091 palisade healthcheck`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), std.environ)
			if err != nil {
				return err
			}
			return askReady(cmd, std.out, cfg.Metrics)
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// askReady prints what the server at a listening address says of itself.
func askReady(cmd *cobra.Command, out io.Writer, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost" // the server listens on all addresses
	}
	request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	// Without a proxy: HTTP_PROXY is for what lies outside.
	client := &http.Client{Timeout: healthcheckTimeout, Transport: &http.Transport{Proxy: nil}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no server answers at its metrics port: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, printable(strings.TrimSpace(string(said))))
	if response.StatusCode != http.StatusOK {
		return errNo
	}
	return nil
}
