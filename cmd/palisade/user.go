package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/printout"
)

func newUser(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "List, demote and remove users, and link them to identities of the OpenID Connect issuer",
		Long: `List, demote and remove the users of the server, and link them to identities of the OpenID Connect issuer. A sign-in never links an
identity to an existing user, whatever e-mail address the issuer reports: only these commands do. They use the store
directly: run them on the server's machine with the server's settings. The audit trail records each change.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newUserList(std), newUserLink(std), newUserUnlink(std), newUserTokens(std), newUserRole(std), newUserRemove(std))
	return cmd
}

func newUserList(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the users, their issuers, and their roles in a deployment",
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
	addStoreFlags(cmd)
	return cmd
}

func newUserLink(std streams) *cobra.Command {
	var email, subject string
	cmd := &cobra.Command{
		Use:   "link --email EMAIL --subject SUBJECT",
		Short: "Link a user to an identity of the issuer",
		Long: `Link a user to a subject (sub) of the OpenID Connect issuer in the settings. From then on, this identity signs in as
the user, with all memberships and roles of the user. If a sign-in is refused because the e-mail address belongs to an
existing user, the error contains the subject: make sure that both are the same person. admin@localhost cannot be
linked: it is the emergency access that depends on no issuer.`,
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
	cmd.Flags().StringVar(&subject, "subject", "", "the user's id at the issuer (the claim sub)")
	_ = cmd.MarkFlagRequired("email")
	_ = cmd.MarkFlagRequired("subject")
	return cmd
}

func newUserUnlink(std streams) *cobra.Command {
	var email string
	cmd := &cobra.Command{
		Use:   "unlink --email EMAIL",
		Short: "Remove the issuer's identity from a user",
		Long: `Remove the identity of the OpenID Connect issuer from a user. From the next request on, the identity is unknown. The
user, the memberships and the API tokens stay.`,
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
			_, err = fmt.Fprintf(std.out, "User %d (%s) no longer has an identity of an issuer.\n", u.ID, printable(u.Email))
			return err
		},
	}
	addStoreFlags(cmd)
	cmd.Flags().StringVar(&email, "email", "", "e-mail address of the user")
	_ = cmd.MarkFlagRequired("email")
	return cmd
}
