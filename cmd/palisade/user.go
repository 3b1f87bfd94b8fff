package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/cmd/palisade/printout"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

func newUser(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "List users, and link them to identities of the OpenID Connect issuer",
		Long: `List the users of the server, and say which identity of the OpenID Connect issuer is which user. A sign-in
never takes over a user, whatever e-mail address the issuer vouches for: linking is done here. These commands work
on the store itself, so they run where the server runs and with its settings; the audit trail tells of each change.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newUserList(std), newUserLink(std), newUserUnlink(std))
	return cmd
}

func newUserList(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the users, who vouches for them, and their roles in a deployment",
		Example: `  palisade user list --deployment default`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			users, err := services.ListUsers(cmd.Context(), cfg, cfg.Deployment)
			if err != nil {
				return err
			}
			table := printout.NewTable(std.out)
			_, _ = fmt.Fprintln(table, "ID\tEMAIL\tNAME\tROLE\tISSUER\tSUBJECT")
			for _, u := range users {
				_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", u.ID, printable(u.Email), printable(u.Name),
					orDash(u.Role), orDash(u.Issuer), orDash(u.Subject))
			}
			return table.Flush()
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	return cmd
}

func newUserLink(std streams) *cobra.Command {
	var email, subject string
	cmd := &cobra.Command{
		Use:   "link --email EMAIL --subject SUBJECT",
		Short: "Let a user sign in with an identity of the issuer",
		Long: `Let a user sign in as a subject (sub) of the OpenID Connect issuer that the settings name. Whoever has this
identity is the user from then on, with all memberships and roles of the user. When the sign-in of a person is
refused because the e-mail address belongs to a user already, the refusal says the subject: make sure that both are
the same person. admin@localhost cannot be linked: it is the way in that depends on no issuer.`,
		Example: `  palisade user link --email ada@example.com --subject 00u1a2b3c4 --oidc-issuer https://id.example.com`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			u, err := services.LinkUser(cmd.Context(), cfg, email, subject)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "User %d (%s) signs in as %s of %s.\n", u.ID, printable(u.Email), printable(u.Subject), printable(u.Issuer))
			return err
		},
	}
	config.AddFlags(cmd.Flags(), append([]string{"oidc-issuer"}, storeKeys...)...)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	cmd.Flags().StringVar(&subject, "subject", "", "the person's id at the issuer (the claim sub)")
	_ = cmd.MarkFlagRequired("email")
	_ = cmd.MarkFlagRequired("subject")
	return cmd
}

func newUserUnlink(std streams) *cobra.Command {
	var email string
	cmd := &cobra.Command{
		Use:   "unlink --email EMAIL",
		Short: "Take the identity of the issuer from a user",
		Long: `Take the identity of the OpenID Connect issuer from a user. Whoever has the identity is a stranger from the next
call on; the user, the memberships and the API tokens stay.`,
		Example: `  palisade user unlink --email ada@example.com`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			u, err := services.UnlinkUser(cmd.Context(), cfg, email)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "User %d (%s) has no identity of an issuer any more.\n", u.ID, printable(u.Email))
			return err
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	_ = cmd.MarkFlagRequired("email")
	return cmd
}
