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

// healthcheckTimeout limits the request.
const healthcheckTimeout = 5 * time.Second

func newHealthcheck(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check whether the server on this machine is ready",
		Long: `Check at the metrics port whether the server on this machine is ready: for a container's HEALTHCHECK
without curl. It has the same settings as serve.

Exit status 1 if the server is not ready, with the reason; 2 if it does not answer.`,
		Example: `  palisade healthcheck
  PALISADE_METRICS=0.0.0.0:9091 palisade healthcheck`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), std.environ)
			if err != nil {
				return err
			}
			return printReadiness(cmd, std.out, cfg.Metrics)
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// printReadiness prints the readiness of the server at a listen address.
func printReadiness(cmd *cobra.Command, out io.Writer, address string) error {
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
	// No proxy: HTTP_PROXY is for outside hosts.
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
