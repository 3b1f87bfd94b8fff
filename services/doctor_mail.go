package services

import (
	"context"
	"log/slog"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/mailserver"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/notifications/channel"
)

// checkMail connects to the mail server and signs in, without a message.
func checkMail(ctx context.Context, cfg config.Config) Check {
	const name = "mail server"
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	to, err := mailserver.Parse(cfg.SMTP, cfg.SMTPFrom)
	if err != nil {
		return failed(name, err.Error(), "correct --smtp and --smtp-from")
	}
	guard, err := server.OpenGuard(cfg, slog.New(slog.DiscardHandler)) // the check itself reports the reason
	if err == nil {
		err = channel.CheckMail(ctx, guard, to)
	}
	if err != nil {
		return failed(name, to.String()+": "+err.Error(), "correct --smtp (scheme, host, port, user, password), or the mail server")
	}
	return passed(name, to.String()+" takes messages of "+cfg.SMTPFrom)
}
