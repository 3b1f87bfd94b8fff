package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

func newJWT(std streams) *cobra.Command {
	var email, ttl string
	cmd := &cobra.Command{
		Use:   "jwt --email EMAIL",
		Short: "Mint a user token (JWT) for a local user, or rotate the signing key",
		Long: `Mint a JSON Web Token for a user of this server, signed with the server's own key. Standard output has only
the token. Some operations accept such a token and no API token. The command uses the store directly: run it on
the server's machine with the server's settings. It is recorded in the audit trail.`,
		Example: `  curl -H "Authorization: Bearer $(palisade jwt --email ada@example.com)" http://127.0.0.1:8080/api/v1/deployments
  palisade jwt --email ada@example.com --ttl 15m
  palisade jwt rotate`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if email == "" {
				return usagef("--email is missing: whose token is it?")
			}
			valid, err := config.ParseDuration(ttl)
			if err != nil || valid <= 0 {
				return usagef("--ttl: got %q, want a duration such as 15m or 1h", ttl)
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			token, err := services.MintJWT(cmd.Context(), cfg, email, valid)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(std.out, token)
			return err
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	cmd.Flags().StringVar(&ttl, "ttl", "1h", "time until the token expires")
	cmd.AddCommand(newJWTRotate(std))
	return cmd
}

func newJWTRotate(std streams) *cobra.Command {
	var revoke bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Sign new user tokens with a new key",
		Long: `Create a new signing key. Tokens signed with the old key stay valid until they expire; until then both keys
are published. With --revoke the old keys are deleted: every node refuses their tokens from the next request
on, and their users need new tokens.`,
		Example: `  palisade jwt rotate
  palisade jwt rotate --revoke    # a key or a token has leaked`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			kid, err := services.RotateJWTKey(cmd.Context(), cfg, revoke)
			if err != nil {
				return err
			}
			text := "New user tokens are signed with key %s.\n"
			if revoke {
				text = "New user tokens are signed with key %s. All older ones are refused from now on.\n"
			}
			_, err = fmt.Fprintf(std.out, text, kid)
			return err
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	cmd.Flags().BoolVar(&revoke, "revoke", false, "revoke all tokens signed with older keys, immediately")
	return cmd
}
