package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/findings/printout"
)

// tokenFlags are the flags that decide about the tokens of a user.
type tokenFlags struct {
	others    string
	end, keep []string
}

func (f *tokenFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.others, "tokens", "",
		"what happens to the user's API tokens: end, keep (hand them over to the deployment), or leave (the user's role limits them)")
	cmd.Flags().StringSliceVar(&f.end, "end-tokens", nil, "ids of tokens to end, whatever --tokens says")
	cmd.Flags().StringSliceVar(&f.keep, "keep-tokens", nil, "ids of tokens to hand over to the deployment, whatever --tokens says")
}

func (f *tokenFlags) decisions() (services.TokenDecisions, error) {
	if f.others != "" && f.others != "end" && f.others != "keep" && f.others != "leave" {
		return services.TokenDecisions{}, usagef("--tokens: got %q, want end, keep or leave", printable(f.others))
	}
	end, err := tokenIDs(f.end)
	if err != nil {
		return services.TokenDecisions{}, err
	}
	keep, err := tokenIDs(f.keep)
	return services.TokenDecisions{Others: f.others, End: end, Keep: keep}, err
}

// printDecided prints what happened to the tokens of a user, or the tokens that a command must decide about.
func printDecided(std streams, decided []services.DecidedToken, err error) error {
	var undecided *services.UndecidedTokensError
	if errors.As(err, &undecided) {
		for _, t := range undecided.Tokens {
			decided = append(decided, services.DecidedToken{Token: t, Decision: "?"})
		}
	}
	if len(decided) > 0 {
		table := printout.NewTable(std.out)
		_, _ = fmt.Fprintln(table, "TOKEN\tNAME\tENDS IN\tROLE\tLAST USED\tDECISION")
		for _, t := range decided {
			_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", t.ID, printable(t.Name), t.Hint, t.Role, day(t.LastUsedAt), t.Decision)
		}
		if flushed := table.Flush(); err == nil {
			err = flushed
		}
	}
	if undecided != nil {
		return fmt.Errorf("nothing was changed: %w with --tokens end, keep or leave, or with --end-tokens and --keep-tokens", undecided)
	}
	return err
}

func newUserTokens(std streams) *cobra.Command {
	var email string
	cmd := &cobra.Command{
		Use:   "tokens --email EMAIL",
		Short: "List the API tokens of a user in a deployment",
		Long: `List the API tokens that a user created in a deployment, without those that belong to the deployment. ACTS AS is what
the user's present role leaves of the token's own.`,
		Example: `  palisade user tokens --email ada@example.com`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			tokens, err := services.ListUserTokens(cmd.Context(), cfg, email)
			if err != nil {
				return err
			}
			return printTokens(std, tokens)
		},
	}
	addStoreFlags(cmd)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	_ = cmd.MarkFlagRequired("email")
	return cmd
}

func newUserRole(std streams) *cobra.Command {
	var email, role string
	var tokens tokenFlags
	cmd := &cobra.Command{
		Use:   "role --email EMAIL --role ROLE",
		Short: "Change the role of a user in a deployment",
		Long: `Change the role of a user in a deployment, and decide about the API tokens that the user created. Such a token does no
more than the user may do. If there are any, --tokens or the lists must say what happens to each; without, the
command lists them and changes nothing.`,
		Example: `  palisade user role --email ada@example.com --role readonly --tokens end --keep-tokens 7,9`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			decisions, err := tokens.decisions()
			if err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			decided, err := services.ChangeUserRole(cmd.Context(), cfg, email, role, decisions)
			if err := printDecided(std, decided, err); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "The user %s has a new role.\n", printable(email))
			return err
		},
	}
	addStoreFlags(cmd)
	tokens.add(cmd)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	cmd.Flags().StringVar(&role, "role", "", "role: admin, member, impersonator or readonly")
	_ = cmd.MarkFlagRequired("email")
	_ = cmd.MarkFlagRequired("role")
	return cmd
}

func newUserRemove(std streams) *cobra.Command {
	var email string
	var tokens tokenFlags
	cmd := &cobra.Command{
		Use:   "remove --email EMAIL",
		Short: "Remove a user from a deployment",
		Long: `Remove a user from a deployment, end the user's sessions, and decide about the API tokens that the user created. Such
a token does nothing while the user is not a member. If there are any, --tokens or the lists must say what happens to
each; without, the command lists them and changes nothing. Someone with the claim or an invitation can join again:
end that first (see docs/sign-in.md).`,
		Example: `  palisade user remove --email ada@example.com --tokens end
  palisade user remove --email ada@example.com --tokens end --keep-tokens 7    # 7 goes on as a token of the deployment`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			decisions, err := tokens.decisions()
			if err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			decided, err := services.RemoveUser(cmd.Context(), cfg, email, decisions)
			if err := printDecided(std, decided, err); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "The user %s is no longer a member.\n", printable(email))
			return err
		},
	}
	addStoreFlags(cmd)
	tokens.add(cmd)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	_ = cmd.MarkFlagRequired("email")
	return cmd
}
