package server

import (
	"context"
	"fmt"
	"io"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// ConsoleLinkURL is the address of a one-time link to the console.
func ConsoleLinkURL(cfg config.Config, secret string) string {
	return cfg.BaseURL() + "/auth/link?code=" + secret
}

// printConsoleLink shows the first administrator how to open the console. With an identity provider, people sign in
// there. The link is stored, so a restart does not end it.
func (s *Server) printConsoleLink(ctx context.Context, st *store.Store, w io.Writer, email string) error {
	if s.config.OIDCClientID != "" || !s.config.Has(config.RoleAPI) {
		return nil
	}
	var secret string
	err := st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) (err error) {
		secret, err = access.NewConsoleLink(ctx, tx, email)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `
  Open the console. This link works once, within %d minutes, also after a restart:

    %s

  Another one: palisade console-link
`, int(access.ConsoleLinkTTL.Minutes()), ConsoleLinkURL(s.config, secret))
	if err != nil {
		return fmt.Errorf("print the link to the console (make another with: palisade console-link): %w", err)
	}
	return nil
}
