package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

func newConsoleLink(std streams) *cobra.Command {
	var email string
	cmd := &cobra.Command{
		Use:   "console-link",
		Short: "Make a one-time link that signs a local user in to the console",
		Long: fmt.Sprintf(`Make a link that signs a user of this server in to the console. It works once, within %d minutes.
Standard output has only the link. The command uses the store directly: run it on the server's machine with
the server's settings. It is recorded in the audit trail.`, int(services.ConsoleLinkTTL.Minutes())),
		Example: `  palisade console-link
  palisade console-link --email ada@example.com --public-url https://palisade.example.com`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			link, err := services.NewConsoleLink(cmd.Context(), cfg, email)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(std.out, link)
			return err
		},
	}
	config.AddFlags(cmd.Flags(), append(slices.Clone(storeKeys), "http", "public-url", "tls-cert")...)
	cmd.Flags().StringVar(&email, "email", services.AdminEmail, "e-mail address of the user")
	return cmd
}
