package services

import (
	"context"
	"io"

	"github.com/palisade/palisade/services/ai"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/console"
	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/reporting"
	"github.com/palisade/palisade/services/rules"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/supplychain"
	"github.com/palisade/palisade/services/ticketing"
	"github.com/palisade/palisade/services/workflows"
)

// Domains lists all domains of a server.
var Domains = []server.Domain{
	platform.Register,
	supplychain.Register,
	reporting.Register,
	ai.Register,
	deployments.Register,
	projects.Register,
	scans.Register,
	rules.Register,
	findings.Register,
	policies.Register,
	identity.Register,
	notifications.Register,
	scm.Register,
	ticketing.Register,
	workflows.Register,
	console.Register,
	exportAnchors,
}

// Start starts a server with all domains; see [server.Start].
func Start(ctx context.Context, cfg config.Config, stderr io.Writer) (*server.Server, error) {
	return server.Start(ctx, cfg, stderr, Domains)
}

// Run runs a server with all domains; see [server.Run].
func Run(ctx context.Context, cfg config.Config, stderr io.Writer) error {
	return server.Run(ctx, cfg, stderr, Domains)
}
