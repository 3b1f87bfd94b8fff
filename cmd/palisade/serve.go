package main

import (
	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

func newServe(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server: HTTP/JSON and gRPC APIs, metrics and background work, until SIGINT or SIGTERM.

The first start on an empty store creates the deployment, an admin user and one API token, and prints the
token once. Every setting is a flag, an environment variable or a key in the --config file, in this order
of precedence. An unknown key or variable is an error.`,
		Example: `  # Try it: SQLite in ./data, loopback only
  palisade serve

  # PostgreSQL, TLS on both ports, reachable from other machines
  PALISADE_DATABASE=postgres://palisade:…@db/palisade \
  palisade serve --http 0.0.0.0:8443 --grpc 0.0.0.0:9443 --tls-cert chain.pem --tls-key key.pem

  # Behind a proxy that terminates TLS
  palisade serve --http 0.0.0.0:8080 --behind-tls-proxy --public-url https://palisade.example.com

  # Settings from a file
  palisade serve --config /etc/palisade.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(cmd.Flags(), std.environ)
			if err != nil {
				return err
			}
			if err := cfg.Validate(); err != nil {
				return err
			}
			return services.Run(cmd.Context(), cfg, std.err)
		},
	}
	config.AddFlags(cmd.Flags())
	cmd.Flags().SortFlags = false // the order of Config groups related settings
	return cmd
}
