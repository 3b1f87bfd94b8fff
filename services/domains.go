package services

import (
	"context"
	"log/slog"
	"slices"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/ai"
	"github.com/palisade/palisade/services/deployments"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/identity"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/notifications"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/platform"
	"github.com/palisade/palisade/services/policies"
	"github.com/palisade/palisade/services/projects"
	"github.com/palisade/palisade/services/reporting"
	"github.com/palisade/palisade/services/rules"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/scm"
	"github.com/palisade/palisade/services/supplychain"
	"github.com/palisade/palisade/services/workflows"
	"github.com/palisade/palisade/services/workflows/engine"
	"github.com/palisade/palisade/services/workflows/step"
	"github.com/palisade/palisade/services/workflows/steps"
)

// Domain is one service group: its handlers on the gRPC server, and its routes on the HTTP gateway.
type Domain struct {
	// RegisterGRPC registers the handlers.
	RegisterGRPC func(grpc.ServiceRegistrar)
	// RegisterHTTP adds the routes to mux; they call the handlers through conn, which has every interceptor. Nil for
	// service groups without routes.
	RegisterHTTP func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error
}

// deps is what service groups are made of.
type deps struct {
	config  Config
	log     *slog.Logger
	store   *store.Store
	reports *reportsDatabase
	jobs    *jobs.Jobs
	keyring *secret.Keyring
	trail   *audit.Trail
	tokens  *access.Tokens
	issuer  *access.Issuer
	metrics *telemetry.Metrics
	egress  *egress.Guard
	model   *llm.Provider
	calls   *traffic.Calls
	spool   *spool.Spool
}

// domains is the one list of what the server serves; the functions below are its parts.
func domains(ctx context.Context, d deps) ([]Domain, error) {
	uploads, err := uploadOptions(ctx, d)
	if err != nil {
		return nil, err
	}
	scanners, err := scans.NewScannerProtocol(d.store, d.jobs, uploads, d.config.BaseURL())
	if err != nil {
		return nil, err
	}
	incoming, err := scm.NewIncomingWebhooks(hosts(d), d.jobs, d.log)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]Domain{
		group[platformv1.MiscellaneousServiceServer](platformv1.RegisterMiscellaneousServiceServer, platform.Miscellaneous{},
			platformv1.RegisterMiscellaneousServiceHandlerClient, platformv1.NewMiscellaneousServiceClient),
		group[platformv1.ScannerSupportServiceServer](platformv1.RegisterScannerSupportServiceServer, platform.ScannerSupport{},
			platformv1.RegisterScannerSupportServiceHandlerClient, platformv1.NewScannerSupportServiceClient),
		group[platformv1.AuditServiceServer](platformv1.RegisterAuditServiceServer, platform.NewAudit(d.store, d.trail, d.log),
			platformv1.RegisterAuditServiceHandlerClient, platformv1.NewAuditServiceClient),
		group[supplychainv1.PackageManagerConfigurationsServiceServer](supplychainv1.RegisterPackageManagerConfigurationsServiceServer,
			supplychain.NewPackageManagers(d.store, d.keyring, d.egress),
			supplychainv1.RegisterPackageManagerConfigurationsServiceHandlerClient, supplychainv1.NewPackageManagerConfigurationsServiceClient),
		group[supplychainv1.SupplyChainServiceServer](supplychainv1.RegisterSupplyChainServiceServer, supplychain.NewSupplyChain(d.store),
			supplychainv1.RegisterSupplyChainServiceHandlerClient, supplychainv1.NewSupplyChainServiceClient),
		group[supplychainv1.MalwareFirewallServiceServer](supplychainv1.RegisterMalwareFirewallServiceServer, supplychain.NewMalwareFirewall(d.store),
			supplychainv1.RegisterMalwareFirewallServiceHandlerClient, supplychainv1.NewMalwareFirewallServiceClient),
		d.reports.behind(group[reportingv1.ReportsServiceServer](reportingv1.RegisterReportsServiceServer, reporting.NewReports(d.reports.store, int64(d.config.ReportCache)),
			reportingv1.RegisterReportsServiceHandlerClient, reportingv1.NewReportsServiceClient)),
		d.reports.behind(group[reportingv1.MalwareFirewallReportsServiceServer](reportingv1.RegisterMalwareFirewallReportsServiceServer, reporting.NewMalwareFirewall(d.reports.store),
			reportingv1.RegisterMalwareFirewallReportsServiceHandlerClient, reportingv1.NewMalwareFirewallReportsServiceClient)),
		group[scansv1.ScannerProtocolServiceServer](scansv1.RegisterScannerProtocolServiceServer, scanners,
			scansv1.RegisterScannerProtocolServiceHandlerClient, scansv1.NewScannerProtocolServiceClient),
		{RegisterGRPC: func(s grpc.ServiceRegistrar) { scmv1.RegisterIncomingWebhooksServiceServer(s, incoming) }},
		{RegisterGRPC: func(s grpc.ServiceRegistrar) {
			scansv1.RegisterReportUploadsServiceServer(s, scans.NewReportUploads(d.store, d.jobs, uploads))
		}},
	}, aiGroups(d), deploymentGroups(d), findingGroups(d), identityGroups(d), notificationGroups(d), scmGroups(d), workflowGroups(d)), nil
}

// deploymentGroups serve organizations and their settings.
func deploymentGroups(d deps) []Domain {
	return []Domain{
		group[deploymentsv1.DeploymentsServiceServer](deploymentsv1.RegisterDeploymentsServiceServer, deployments.NewDeployments(d.config.BaseURL()),
			deploymentsv1.RegisterDeploymentsServiceHandlerClient, deploymentsv1.NewDeploymentsServiceClient),
		group[deploymentsv1.DeploymentServiceServer](deploymentsv1.RegisterDeploymentServiceServer, deployments.NewDeployment(d.store),
			deploymentsv1.RegisterDeploymentServiceHandlerClient, deploymentsv1.NewDeploymentServiceClient),
		group[deploymentsv1.DeploymentProductsServiceServer](deploymentsv1.RegisterDeploymentProductsServiceServer, deployments.NewDeploymentProducts(d.store),
			deploymentsv1.RegisterDeploymentProductsServiceHandlerClient, deploymentsv1.NewDeploymentProductsServiceClient),
		group[deploymentsv1.DeploymentTagServiceServer](deploymentsv1.RegisterDeploymentTagServiceServer, deployments.NewDeploymentTags(d.store),
			deploymentsv1.RegisterDeploymentTagServiceHandlerClient, deploymentsv1.NewDeploymentTagServiceClient),
		group[deploymentsv1.DeploymentSsoProvidersServiceServer](deploymentsv1.RegisterDeploymentSsoProvidersServiceServer,
			deployments.NewSSOProviders(d.store, d.config.OIDCIssuer, d.config.OIDCAudience),
			deploymentsv1.RegisterDeploymentSsoProvidersServiceHandlerClient, deploymentsv1.NewDeploymentSsoProvidersServiceClient),
		group[deploymentsv1.ChecklistServiceServer](deploymentsv1.RegisterChecklistServiceServer, deployments.NewOnboardingChecklist(d.store),
			deploymentsv1.RegisterChecklistServiceHandlerClient, deploymentsv1.NewChecklistServiceClient),
		group[deploymentsv1.FeatureRolloutsServiceServer](deploymentsv1.RegisterFeatureRolloutsServiceServer, deployments.FeatureRollouts{},
			deploymentsv1.RegisterFeatureRolloutsServiceHandlerClient, deploymentsv1.NewFeatureRolloutsServiceClient),
		group[deploymentsv1.VersionsServiceServer](deploymentsv1.RegisterVersionsServiceServer, deployments.NewVersions(d.store),
			deploymentsv1.RegisterVersionsServiceHandlerClient, deploymentsv1.NewVersionsServiceClient),
	}
}

// findingGroups serve projects, scans and what they found.
func findingGroups(d deps) []Domain {
	return []Domain{
		group[projectsv1.ProjectsServiceServer](projectsv1.RegisterProjectsServiceServer, projects.NewProjects(d.store),
			projectsv1.RegisterProjectsServiceHandlerClient, projectsv1.NewProjectsServiceClient),
		group[scansv1.ScansServiceServer](scansv1.RegisterScansServiceServer, scans.NewScans(d.store),
			scansv1.RegisterScansServiceHandlerClient, scansv1.NewScansServiceClient),
		group[rulesv1.RulesServiceServer](rulesv1.RegisterRulesServiceServer, rules.NewRules(d.store),
			rulesv1.RegisterRulesServiceHandlerClient, rulesv1.NewRulesServiceClient),
		group[rulesv1.ScannerRulesServiceServer](rulesv1.RegisterScannerRulesServiceServer, rules.NewScannerRules(d.store, d.config.BaseURL()),
			rulesv1.RegisterScannerRulesServiceHandlerClient, rulesv1.NewScannerRulesServiceClient),
		group[findingsv1.FindingsServiceServer](findingsv1.RegisterFindingsServiceServer, findings.NewFindings(d.store, d.log),
			findingsv1.RegisterFindingsServiceHandlerClient, findingsv1.NewFindingsServiceClient),
		group[findingsv1.SecretsServiceServer](findingsv1.RegisterSecretsServiceServer, findings.NewSecrets(d.store),
			findingsv1.RegisterSecretsServiceHandlerClient, findingsv1.NewSecretsServiceClient),
		group[findingsv1.TriageServiceServer](findingsv1.RegisterTriageServiceServer, findings.NewTriage(d.store),
			findingsv1.RegisterTriageServiceHandlerClient, findingsv1.NewTriageServiceClient),
		group[findingsv1.FindingIdentityServiceServer](findingsv1.RegisterFindingIdentityServiceServer, findings.NewFindingIdentity(d.store),
			findingsv1.RegisterFindingIdentityServiceHandlerClient, findingsv1.NewFindingIdentityServiceClient),
		group[policiesv1.PoliciesV2ServiceServer](policiesv1.RegisterPoliciesV2ServiceServer, policies.NewPoliciesV2(d.store),
			policiesv1.RegisterPoliciesV2ServiceHandlerClient, policiesv1.NewPoliciesV2ServiceClient),
	}
}

// identityGroups serve people, their teams and tokens.
func identityGroups(d deps) []Domain {
	return []Domain{
		group[identityv1.TokensServiceServer](identityv1.RegisterTokensServiceServer, identity.NewTokens(d.store, d.tokens),
			identityv1.RegisterTokensServiceHandlerClient, identityv1.NewTokensServiceClient),
		group[identityv1.TokenRequestsServiceServer](identityv1.RegisterTokenRequestsServiceServer, identity.NewTokenRequests(d.store, d.tokens, d.keyring),
			identityv1.RegisterTokenRequestsServiceHandlerClient, identityv1.NewTokenRequestsServiceClient),
		group[identityv1.TeamsServiceServer](identityv1.RegisterTeamsServiceServer, identity.NewTeams(d.store),
			identityv1.RegisterTeamsServiceHandlerClient, identityv1.NewTeamsServiceClient),
		group[identityv1.UsersServiceServer](identityv1.RegisterUsersServiceServer, identity.NewUsers(d.store),
			identityv1.RegisterUsersServiceHandlerClient, identityv1.NewUsersServiceClient),
	}
}

// notificationGroups serve who is told.
func notificationGroups(d deps) []Domain {
	return []Domain{
		group[notificationsv1.NotificationRulesServiceServer](notificationsv1.RegisterNotificationRulesServiceServer,
			notifications.NewNotificationRules(senders(d), d.jobs),
			notificationsv1.RegisterNotificationRulesServiceHandlerClient, notificationsv1.NewNotificationRulesServiceClient),
		group[notificationsv1.NotificationWebhooksServiceServer](notificationsv1.RegisterNotificationWebhooksServiceServer,
			notifications.NewNotificationWebhooks(senders(d)),
			notificationsv1.RegisterNotificationWebhooksServiceHandlerClient, notificationsv1.NewNotificationWebhooksServiceClient),
		group[notificationsv1.NotificationsServiceServer](notificationsv1.RegisterNotificationsServiceServer, notifications.NewNotifications(d.store),
			notificationsv1.RegisterNotificationsServiceHandlerClient, notificationsv1.NewNotificationsServiceClient),
		group[notificationsv1.DeliveriesServiceServer](notificationsv1.RegisterDeliveriesServiceServer, notifications.NewDeliveries(d.store, d.jobs),
			notificationsv1.RegisterDeliveriesServiceHandlerClient, notificationsv1.NewDeliveriesServiceClient),
	}
}

// scmGroups serve source-code hosts.
func scmGroups(d deps) []Domain {
	return []Domain{
		group[scmv1.ScmServiceServer](scmv1.RegisterScmServiceServer, scm.NewConfigurations(hosts(d), d.jobs),
			scmv1.RegisterScmServiceHandlerClient, scmv1.NewScmServiceClient),
		group[scmv1.ScmSubscriptionsServiceServer](scmv1.RegisterScmSubscriptionsServiceServer, scm.NewWebhooks(hosts(d)),
			scmv1.RegisterScmSubscriptionsServiceHandlerClient, scmv1.NewScmSubscriptionsServiceClient),
		group[scmv1.ScmAppsServiceServer](scmv1.RegisterScmAppsServiceServer, scm.NewApps(hosts(d), d.log),
			scmv1.RegisterScmAppsServiceHandlerClient, scmv1.NewScmAppsServiceClient),
		group[scmv1.ReviewCommentProductContentServiceServer](scmv1.RegisterReviewCommentProductContentServiceServer, scm.NewReviewComments(d.store),
			scmv1.RegisterReviewCommentProductContentServiceHandlerClient, scmv1.NewReviewCommentProductContentServiceClient),
	}
}

// workflowGroups serve agentic workflows and what they found.
func workflowGroups(d deps) []Domain {
	kinds := stepKinds(d)
	catalog, runner := workflows.NewCatalog(d.store, kinds), engine.New(d.store, kinds, d.config.WorkflowMaxTasks, d.log)
	return []Domain{
		group[workflowsv1.WorkflowCatalogServiceServer](workflowsv1.RegisterWorkflowCatalogServiceServer, catalog,
			workflowsv1.RegisterWorkflowCatalogServiceHandlerClient, workflowsv1.NewWorkflowCatalogServiceClient),
		group[workflowsv1.AgenticIssuesServiceServer](workflowsv1.RegisterAgenticIssuesServiceServer, workflows.NewAgenticIssues(d.store),
			workflowsv1.RegisterAgenticIssuesServiceHandlerClient, workflowsv1.NewAgenticIssuesServiceClient),
		group[workflowsv1.WorkflowJobsServiceServer](workflowsv1.RegisterWorkflowJobsServiceServer, workflows.NewJobReads(d.store),
			workflowsv1.RegisterWorkflowJobsServiceHandlerClient, workflowsv1.NewWorkflowJobsServiceClient),
		group[workflowsv1.WorkflowRunsServiceServer](workflowsv1.RegisterWorkflowRunsServiceServer,
			workflows.NewRuns(d.store, d.jobs, runner, catalog.Current),
			workflowsv1.RegisterWorkflowRunsServiceHandlerClient, workflowsv1.NewWorkflowRunsServiceClient),
		group[workflowsv1.WorkflowTasksServiceServer](workflowsv1.RegisterWorkflowTasksServiceServer, workflows.NewTasks(d.store, d.jobs, runner, d.log),
			workflowsv1.RegisterWorkflowTasksServiceHandlerClient, workflowsv1.NewWorkflowTasksServiceClient),
	}
}

// stepKinds is what steps of workflows can do.
func stepKinds(d deps) step.Registry {
	return steps.Registry(steps.Needs{Store: d.store, Egress: d.egress, LLM: d.model, Repository: hosts(d).Repository, Dir: d.config.Data})
}

// aiGroups serve what a language model does with findings.
func aiGroups(d deps) []Domain {
	assistant := assistants(d)
	return []Domain{
		group[aiv1.AiTasksServiceServer](aiv1.RegisterAiTasksServiceServer, ai.NewTasks(assistant, d.jobs),
			aiv1.RegisterAiTasksServiceHandlerClient, aiv1.NewAiTasksServiceClient),
		group[aiv1.AiFixJobsServiceServer](aiv1.RegisterAiFixJobsServiceServer, ai.NewFixJobs(assistant, d.jobs),
			aiv1.RegisterAiFixJobsServiceHandlerClient, aiv1.NewAiFixJobsServiceClient),
		group[aiv1.AutofixServiceServer](aiv1.RegisterAutofixServiceServer, ai.NewAutofix(assistant, d.jobs),
			aiv1.RegisterAutofixServiceHandlerClient, aiv1.NewAutofixServiceClient),
		group[aiv1.AutotriageFeedbackServiceServer](aiv1.RegisterAutotriageFeedbackServiceServer, ai.NewFeedback(d.store),
			aiv1.RegisterAutotriageFeedbackServiceHandlerClient, aiv1.NewAutotriageFeedbackServiceClient),
		group[aiv1.MemoriesServiceServer](aiv1.RegisterMemoriesServiceServer, ai.NewMemories(d.store),
			aiv1.RegisterMemoriesServiceHandlerClient, aiv1.NewMemoriesServiceClient),
	}
}

// assistants make what the service groups of package ai share.
func assistants(d deps) *ai.Assistant {
	return ai.NewAssistant(d.store, d.model, ai.Hosts{Reached: scm.Reached, Open: hosts(d).Open}, d.config.AIMonthlyRuns)
}

// background is the one list of what domains do when nobody calls. There is no queue yet: a job finds its own with
// jobs.FromContext.
func background(d deps) []jobs.Work {
	return []jobs.Work{
		ai.MemoriesBackground(d.store),
		identity.TokenRequestsBackground(d.store),
		findings.Background(d.store),
		scans.Background(d.store, d.log),
		scans.StatisticsBackground(d.store),
		scans.ScannerBackground(d.store, d.log, scans.UploadOptions{Spool: d.spool, Ingested: ingested(d), Calls: d.calls}),
		supplychain.Background(d.store),
		hosts(d).Background(d.log),
		scm.IncomingBackground(hosts(d), d.log),
		notifications.Background(senders(d), d.log),
		assistants(d).Background(d.log),
		engine.New(d.store, stepKinds(d), d.config.WorkflowMaxTasks, d.log).Background(d.config.WorkflowRetention),
		anchorBackground(d),
	}
}

// senders make what sends notifications.
func senders(d deps) *notifications.Senders {
	mail, err := channel.ParseMail(d.config.SMTP, d.config.SMTPFrom)
	if err != nil {
		panic("mail server: " + err.Error()) // Config.Validate has let it through
	}
	return notifications.NewSenders(d.store, d.keyring, d.egress, mail)
}

// hosts is what the service groups of package scm share.
func hosts(d deps) *scm.Connections {
	return scm.NewConnections(d.store, d.keyring, d.egress, d.config.BaseURL())
}

// group ties the handlers of a service group to the generated routes that lead to them.
func group[Server, Client any](
	registerGRPC func(grpc.ServiceRegistrar, Server), server Server,
	registerHTTP func(context.Context, *runtime.ServeMux, Client) error, client func(grpc.ClientConnInterface) Client,
) Domain {
	return Domain{
		RegisterGRPC: func(s grpc.ServiceRegistrar) { registerGRPC(s, server) },
		RegisterHTTP: func(ctx context.Context, mux *runtime.ServeMux, conn grpc.ClientConnInterface) error {
			return registerHTTP(ctx, mux, client(conn))
		},
	}
}

// openSpool opens the directory of what is too large for the memory, for all that works with it.
func openSpool(cfg Config, metrics *telemetry.Metrics) (*spool.Spool, error) {
	node, deployment := cfg.spoolQuotas()
	limits := spool.Limits{Node: int64(node), Deployment: int64(deployment), Disk: cfg.disk()}
	files, err := spool.Open(cfg.spoolDir(), limits, metrics.RateLimited.Inc)
	if err != nil {
		return nil, err
	}
	metrics.WatchDisk(files.Used, limits.Disk.Free)
	return files, nil
}

func uploadOptions(ctx context.Context, d deps) (scans.UploadOptions, error) {
	key, err := d.keyring.StoredKey(ctx, d.store, "redaction_key")
	if err != nil {
		return scans.UploadOptions{}, err
	}
	return scans.UploadOptions{
		Spool:        d.spool,
		MaxBytes:     int64(d.config.MaxUpload),
		RedactionKey: key,
		Ingested:     ingested(d),
		Calls:        d.calls,
	}, nil
}

// ingested counts results in the metrics.
func ingested(d deps) func(product, outcome string, n int) {
	return func(product, outcome string, n int) {
		d.metrics.FindingsIngested.WithLabelValues(product, outcome).Add(float64(n))
	}
}
