package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/printout"
)

func newToken(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list, hand over and revoke API tokens",
		Long: `Create, list, hand over and revoke the API tokens of a deployment. These commands use the store directly: run them on the
server's machine with the server's settings and key file. They need no token. The audit trail records who created
or revoked each token.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(std), newTokenList(std), newTokenRevoke(std), newTokenHandOver(std))
	return cmd
}

func newTokenCreate(std streams) *cobra.Command {
	var req services.CreateTokenRequest
	var expires string
	cmd := &cobra.Command{
		Use:   "create --name NAME --scopes SCOPES",
		Short: "Create an API token and print its value, once",
		Long: `Create an API token. Standard output has only its value, which is never shown again: the store keeps a
hash. Without --deployment, it belongs to the store's only deployment. No person's role limits it: it does what its own
role allows until it expires or is revoked.`,
		Example: `  palisade token create --name ci --scopes agent                 # may only upload reports
  palisade token create --name dashboard --scopes web-api        # may read
  PALISADE_TOKEN=$(palisade token create --name nightly --scopes web-api --role admin --expires-in 90d)`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			if expires != "" {
				if req.ExpiresIn, err = config.ParseDuration(expires); err != nil || req.ExpiresIn <= 0 {
					return usagef("--expires-in: got %q, want a duration such as 12h or 90d", expires)
				}
			}
			req.Deployment = cfg.Deployment
			token, value, err := services.CreateToken(cmd.Context(), cfg, req)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(std.out, value); err != nil {
				return fmt.Errorf("token %d was created, but its value could not be printed (%w); revoke it: palisade token revoke %d", token.ID, err, token.ID)
			}
			_, _ = fmt.Fprintf(std.err, "Token %d (%s) created with the role %s; %s. This value is not shown again.\n",
				token.ID, printable(token.Name), token.Role, expiry(token.ExpiresAt))
			return nil
		},
	}
	addStoreFlags(cmd)
	cmd.Flags().StringVar(&req.Name, "name", "", "name of the token")
	cmd.Flags().StringSliceVar(&req.Scopes, "scopes", nil, "scopes: web-api, agent, workflow-tasks, install-checks")
	cmd.Flags().StringVar(&req.Role, "role", "", "role: admin, member or readonly; default: the least that its scopes need (readonly for web-api alone, else member)")
	cmd.Flags().StringVar(&expires, "expires-in", "", "time until it expires, such as 12h or 90d; default: never")
	_ = cmd.MarkFlagRequired("name")
	_ = cmd.MarkFlagRequired("scopes")
	return cmd
}

func expiry(at time.Time) string {
	if at.IsZero() {
		return "it does not expire"
	}
	return "it expires " + at.UTC().Format(time.RFC3339)
}

func newTokenList(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the API tokens, without their values",
		Long: `List the API tokens, without their values. A token with a creator does no more than the creator may do now:
ACTS AS is the lesser of its own role and the creator's, or - if the creator is not a member any more. A token
without a creator belongs to the deployment.`,
		Example: `  palisade token list --deployment default`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			tokens, err := services.ListTokens(cmd.Context(), cfg, cfg.Deployment)
			if err != nil {
				return err
			}
			return printTokens(std, tokens)
		},
	}
	addStoreFlags(cmd)
	return cmd
}

func printTokens(std streams, tokens []services.Token) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "ID\tNAME\tENDS IN\tSCOPES\tROLE\tACTS AS\tCREATOR\tSTATE\tCREATED\tLAST USED")
	for _, t := range tokens {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, printable(t.Name), t.Hint,
			strings.Join(t.Scopes, ","), t.Role, orDash(t.EffectiveRole), orDash(t.Creator), tokenState(t, std.now()), day(t.CreatedAt), day(t.LastUsedAt))
	}
	return table.Flush()
}

// tokenState describes whether a token is valid, and until when.
func tokenState(t services.Token, now time.Time) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked " + day(t.RevokedAt)
	case t.ExpiresAt.IsZero():
		return "valid"
	case t.ExpiresAt.After(now):
		return "until " + day(t.ExpiresAt)
	default:
		return "expired " + day(t.ExpiresAt)
	}
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateOnly)
}

func newTokenRevoke(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke an API token and its descendants, immediately and permanently",
		Example: `  palisade token revoke 3    # the id is in: palisade token list`,
		Args:    exactlyOne("a token id (see: palisade token list)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := tokenIDs(args)
			if err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			if err := services.RevokeToken(cmd.Context(), cfg, cfg.Deployment, ids[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "Token %d and its descendants are revoked.\n", ids[0])
			return err
		},
	}
	addStoreFlags(cmd)
	return cmd
}

func exactlyOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("want %s, got %d arguments", what, len(args))
		}
		return nil
	}
}

func newTokenHandOver(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hand-over ID...",
		Short: "Hand API tokens over to the deployment",
		Long: `Hand API tokens over to the deployment. From then on only their own role limits them, and no longer the role of their
creator: a pipeline goes on after a person has left. Who knows the value can use it until you revoke the token.`,
		Example: `  palisade token hand-over 3 4    # the ids are in: palisade token list`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("want the ids of tokens (see: palisade token list)")
			}
			ids, err := tokenIDs(args)
			if err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			if err := services.HandOverTokens(cmd.Context(), cfg, ids); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "These tokens belong to the deployment: %s.\n", strings.Join(args, ", "))
			return err
		},
	}
	addStoreFlags(cmd)
	return cmd
}

func tokenIDs(words []string) ([]int64, error) {
	ids := make([]int64, len(words))
	for i, word := range words {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || id <= 0 {
			return nil, usagef("got %q, want the id of a token, a number (see: palisade token list)", printable(word))
		}
		ids[i] = id
	}
	return ids, nil
}
