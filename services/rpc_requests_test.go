package services_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// rpcRequests are the values in requests that field names do not reveal, in JSON: $1 and $2 are the ids of the first
// rows, $ids are the ids of all rows, $each(…) repeats its text for each row with # for the id, $slug and $deployment
// are the deployment, $uuid is the deployment's own, and $report is a report with a result for each row. A text that
// begins with = is the whole request.
var rpcRequests = map[string]string{
	"/palisade.ai.v1.AutotriageFeedbackService/PostAutotriageFeedback":                    `{"feedback":{"autotriageId":"$1","rating":"RATING_GOOD"}}`,
	"/palisade.ai.v1.MemoriesService/CreateMemory":                                        `{"memory":{"content":"text","context":["TRIAGE"]}}`,
	"/palisade.ai.v1.MemoriesService/CreateMemoryFromTriage":                              `{"note":"text","issueType":"ISSUE_TYPE_SAST","filter":{"ids":$ids}}`,
	"/palisade.ai.v1.MemoriesService/UpdateMemory":                                        `{"memory":{"content":"text","context":["TRIAGE"]}}`,
	"/palisade.deployments.v1.ChecklistService/InviteMembers":                             `{"emails":["new@acme.test"]}`,
	"/palisade.deployments.v1.ChecklistService/PatchChecklist":                            `{"taskStatus":[{"type":"TASK_TYPE_COMPLETE_TOUR","state":"TASK_STATE_COMPLETE"}]}`,
	"/palisade.deployments.v1.DeploymentService/CreateDeployment":                         `{"deploymentName":"new $slug"}`,
	"/palisade.deployments.v1.DeploymentService/SendDeploymentToggleFeedback":             `{"featureAction":"off","feedback":"text"}`,
	"/palisade.deployments.v1.DeploymentTagService/DeleteDeploymentTag":                   `{"repositoryTag":"name$1"}`,
	"/palisade.deployments.v1.DeploymentTagService/GetDeploymentTag":                      `{"repositoryTag":"name$1"}`,
	"/palisade.deployments.v1.DeploymentTagService/UpdateDeploymentTag":                   `{"repositoryTag":"name$1"}`,
	"/palisade.deployments.v1.VersionsService/GetProjectVersionInfo":                      `{"product":"sast"}`,
	"/palisade.policies.v1.IgnoresService/CreateDeploymentProductIgnores":                 `{"productIgnores":[{"product":"PRODUCT_SCA","ignores":["vendor/"]}]}`,
	"/palisade.policies.v1.IgnoresService/PreviewDeploymentProductIgnores":                `{"productIgnores":[{"product":"PRODUCT_SCA","ignores":["vendor/"]}]}`,
	"/palisade.policies.v1.IgnoresService/UpdateDeploymentProductIgnores":                 `{"productIgnores":[{"product":"PRODUCT_SCA","ignores":["vendor/"]}]}`,
	"/palisade.findings.v1.ExportsService/DownloadExport":                                 `{"exportId":"$1"}`,
	"/palisade.findings.v1.ExportsService/ImportFindings":                                 `{"target":{},"chunk":"eyJoZWFkZXIiOnsidmVyc2lvbiI6MX19CnsiZW5kIjp7ImZpbmRpbmdzIjoiMCJ9fQo="}`,
	"/palisade.findings.v1.FindingIdentityService/ListIdentityChanges":                    `={"deploymentId":"$deployment"}`,
	"/palisade.findings.v1.SavedViewsService/UpdateSavedView":                             `{"team_id":"0"}`,
	"/palisade.findings.v1.ExceptionRequestsService/ListExceptionRequests":                `={"deploymentId":"$deployment"}`,
	"/palisade.findings.v1.ExceptionRequestsService/ReviewExceptionRequests":              `={"deploymentId":"$deployment","requestIds":$ids,"decision":"EXCEPTION_DECISION_APPROVE"}`,
	"/palisade.findings.v1.IssuesService/BulkUpdateIssues":                                `={"deploymentId":"$deployment","filter":{"ids":$ids},"params":{"triageState":"FINDING_TRIAGE_STATE_FIXING","note":"text"}}`,
	"/palisade.findings.v1.TriageChangesService/ListTriageChanges":                        `={"deploymentId":"$deployment"}`,
	"/palisade.findings.v1.TriageChangesService/PreviewBulkUpdate":                        `={"deploymentId":"$deployment","filter":{"ids":$ids},"params":{"triageState":"FINDING_TRIAGE_STATE_FIXING"}}`,
	"/palisade.findings.v1.TriageChangesService/UndoTriageChange":                         `={"deploymentId":"$deployment","changeId":"$1"}`,
	"/palisade.workflows.v1.WorkflowJobsService/ListWorkflowJobs":                         `={"deploymentId":"$deployment"}`,
	"/palisade.findings.v1.FindingChangesService/WatchFindings":                           `={"deploymentId":"$deployment"}`,
	"/palisade.findings.v1.FindingIdentityService/MergeFindings":                          `{"into":"$2"}`,
	"/palisade.findings.v1.FindingIdentityService/MoveCategory":                           `={"deploymentId":"$deployment","project":"name$1","tool":"test","fromCategory":"analysis-category$1","toCategory":"api"}`,
	"/palisade.findings.v1.TriageService/BulkTriage":                                      `{"issue_type":"sast","issue_ids":$ids,"new_triage_state":"ignored","new_triage_reason":"no_time"}`,
	"/palisade.identity.v1.TeamsService/CreateDeploymentTeam":                             `{"team":{"name":"new"}}`,
	"/palisade.identity.v1.TeamsService/DeleteDeploymentTeam":                             `{"teamId":"$2"}`,
	"/palisade.identity.v1.TokensService/CreateToken":                                     `{"name":"new","role":"ORG_ROLE_MEMBER","scopes":["web-api"]}`,
	"/palisade.identity.v1.MembersService/ChangeMemberRole":                               `{"role":"ORG_ROLE_READONLY"}`,
	"/palisade.identity.v1.MembersService/RemoveMember":                                   `{"userId":"$2"}`,
	"/palisade.identity.v1.TokensService/HandOverTokens":                                  `{"tokenIds":$ids}`,
	"/palisade.identity.v1.TokensService/DeleteTokens":                                    `{"purpose":"TOKEN_PURPOSE_API","roleFilter":"TOKEN_ROLE_MEMBER"}`,
	"/palisade.identity.v1.TokenRequestsService/ConfirmTokenRequest":                      `{"token_request_key":"$uuid","deployment_slug":"$slug"}`,
	"/palisade.identity.v1.TokenRequestsService/PickUpToken":                              `{"token_request_key":"$uuid"}`,
	"/palisade.platform.v1.EditorService/RunPattern":                                      `={"pattern":"rules: [{id: a}]","target":"x"}`,
	"/palisade.identity.v1.UsersService/GetUser":                                          `={}`,
	"/palisade.identity.v1.UsersService/GetUserSettings":                                  `={}`,
	"/palisade.identity.v1.UsersService/ListUserJoinableOrgs":                             `={}`,
	"/palisade.identity.v1.UsersService/ListUserOrgs":                                     `={}`,
	"/palisade.identity.v1.UsersService/PatchUserSettings":                                `={}`,
	"/palisade.notifications.v1.AutomationsService/CreateAutomation":                      `{"automation":{"name":"new","filters":{"conditions":[{"type":"CONDITION_TYPE_SEVERITY","values":["high"]}]},"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"reviewing"}}]}}`,
	"/palisade.notifications.v1.AutomationsService/UpdateAutomation":                      `{"automation":{"name":"changed","filters":{"conditions":[{"type":"CONDITION_TYPE_SEVERITY","values":["high"]}]},"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"reviewing"}}]}}`,
	"/palisade.notifications.v1.AutomationsService/SimulateAutomation":                    `{"automation":{"name":"new","filters":{"conditions":[{"type":"CONDITION_TYPE_SEVERITY","values":["high"]}]},"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"reviewing"}}]}}`,
	"/palisade.notifications.v1.NotificationRulesService/CreateNotificationRule":          `{"notificationRule":{"channel":"CHANNEL_WEBHOOK","name":"new","config":{"webhook_id":"$1"}}}`,
	"/palisade.notifications.v1.NotificationRulesService/ReplaceNotificationRule":         `{"notificationRule":{"channel":"CHANNEL_WEBHOOK","name":"new","config":{"webhook_id":"$1"}}}`,
	"/palisade.notifications.v1.NotificationWebhooksService/CreateNotificationWebhook":    `{"name":"new","url":"https://hooks.acme.test/new"}`,
	"/palisade.notifications.v1.NotificationWebhooksService/UpdateNotificationWebhook":    `{"name":"changed","url":"https://hooks.acme.test/changed"}`,
	"/palisade.platform.v1.AuditService/ListAuditEntries":                                 `={"deploymentId":"$deployment"}`,
	"/palisade.platform.v1.ScannerSupportService/GetDeepEngine":                           `{"platform":"linux"}`,
	"/palisade.policies.v1.PoliciesService/ListPolicyRules":                               `={"deploymentId":"$deployment","policyId":"4"}`,
	"/palisade.policies.v1.PoliciesService/UpdatePolicyRule":                              `{"policyId":"4","policyMode":"MODE_BLOCK","rulePath":"name$1"}`,
	"/palisade.policies.v1.PoliciesV1Service/ListPolicyRulesV1":                           `={"deploymentId":"$deployment","policyId":"4"}`,
	"/palisade.policies.v1.PoliciesV1Service/UpdatePolicyV1":                              `{"policyId":"4","policyMode":"MODE_BLOCK","rulePath":"name$1"}`,
	"/palisade.policies.v1.PoliciesV2Service/ApplyDetectionPolicy":                        `{"product":"code","bundle":{"product":"code"}}`,
	"/palisade.policies.v1.PoliciesV2Service/DryRunDetectionPolicy":                       `{"product":"code","bundle":{"product":"code","disabled":[$each("name#")]}}`,
	"/palisade.policies.v1.PoliciesV2Service/GetDetectionPolicy":                          `{"product":"code"}`,
	"/palisade.policies.v1.PoliciesV2Service/MigratePolicies":                             `{"dry_run":true}`,
	"/palisade.policies.v1.RuleboardService/CreateRuleboard":                              `{"name":"new","assigned_repos":[$each("name#")]}`,
	"/palisade.policies.v1.RuleboardService/UpdateRuleboard":                              `{"ruleboardSlug":"slug$1","changes":[$each({"item":{"id":"name#"},"policy":"comment"})]}`,
	"/palisade.policies.v1.RuleboardService/UpdateRuleboardOverview":                      `{"ruleboardSlug":"slug$1","name":"new","assigned_repos":[$each("name#")]}`,
	"/palisade.policies.v1.RuleboardService/DeleteRuleboard":                              `{"ruleboardSlug":"slug$1"}`,
	"/palisade.policies.v1.RuleboardService/GetRuleboard":                                 `{"ruleboardSlug":"slug$1"}`,
	"/palisade.policies.v1.RuleboardService/GetRuleboardOverview":                         `{"ruleboardSlug":"slug$1"}`,
	"/palisade.policies.v1.RuleboardService/GetRuleboardFindingCounts":                    `{"ruleboardSlug":"slug$1"}`,
	"/palisade.policies.v1.PoliciesV2Service/ListRemediationPolicyRuns":                   `{"slug":"slug$1"}`,
	"/palisade.projects.v1.ProjectsService/AddProjectTags":                                `{"projectName":"name$1","tags":[$each("tag#")]}`,
	"/palisade.projects.v1.ProjectsService/DeleteProject":                                 `{"projectName":"name$1"}`,
	"/palisade.ai.v1.AiTasksService/CreatePatternFixTask":                                 `{"pattern":"f(","language":"python"}`,
	"/palisade.platform.v1.CloudPostureCredentialsService/CreateCloudPostureCredential":   `{"clientId":"c","clientSecret":"s","apiUrl":"https://posture.acme.test/graphql","tokenUrl":"https://posture.acme.test/token"}`,
	"/palisade.platform.v1.CloudPostureCredentialsService/UpdateCloudPostureCredential":   `={"deploymentId":"$deployment","id":"$1","clientSecret":"s","apiUrl":"https://posture.acme.test/graphql","tokenUrl":"https://posture.acme.test/token"}`,
	"/palisade.platform.v1.CloudPostureCredentialsService/ValidateCloudPostureCredential": `={"deploymentId":"$deployment","id":"$1","clientSecret":"s","apiUrl":"https://posture.invalid/graphql","tokenUrl":"https://posture.invalid/token"}`,
	"/palisade.platform.v1.SupportService/CreateSupportCase":                              `={"deploymentId":"$deployment","subject":"text","description":"text"}`,
	"/palisade.platform.v1.SupportService/ListSupportCases":                               `={"orgid":"$deployment"}`,
	"/palisade.platform.v1.SupportService/UpdateSupportCase":                              `={"deploymentId":"$deployment","caseNumber":"1","status":"closed"}`,
	"/palisade.platform.v1.SurveysService/CreateSurveyResponse":                           `={"surveyName":"new","data":{"a":1},"deploymentSlug":"$slug"}`,
	"/palisade.platform.v1.SurveysService/GetSurveyResponse":                              `={"surveyName":"survey$1","deploymentSlug":"$slug"}`,
	"/palisade.platform.v1.TasksService/GetTaskResult":                                    `{"taskTokenJwt":"x.y.z"}`,
	"/palisade.projects.v1.ProjectsService/DeleteProjectTags":                             `{"projectName":"name$1","tags":[$each("tag#")]}`,
	"/palisade.projects.v1.ProjectsService/GetProject":                                    `{"projectName":"name$1"}`,
	"/palisade.projects.v1.ProjectsService/ToggleProjectManagedScan":                      `{"projectName":"name$1"}`,
	"/palisade.projects.v1.ProjectsService/UpdateProject":                                 `{"projectName":"name$1","tags":[$each("tag#")]}`,
	"/palisade.projects.v1.ProjectsV2Service/DeleteProjectV2":                             `{"projectId":"$2"}`,
	"/palisade.projects.v1.RepositoriesService/GetReposCount":                             `{"filters":{"setup":true}}`,
	"/palisade.projects.v1.RepositoriesService/SearchRepos":                               `{"filters":{"setup":true},"includeSummary":true}`,
	"/palisade.projects.v1.RepositoryChangesService/BulkAddRepoSecret":                    `={"deploymentId":"$deployment","filters":{"ids":$ids}}`,
	"/palisade.projects.v1.RepositoryChangesService/BulkApplyRepoUpdate":                  `={"deploymentId":"$deployment","filters":{"ids":$ids},"change":{"updateTags":true,"tags":["new"],"managedScans":{"fullScan":true}}}`,
	"/palisade.projects.v1.RepositoryChangesService/BulkEditRepos":                        `{"changes":[$each({"repoId":"#","change":{"updateTags":true,"tags":["new"]}})]}`,
	"/palisade.projects.v1.RepositoryChangesService/BulkProvisionRepos":                   `={"deploymentId":"$deployment","filters":{"ids":$ids}}`,
	"/palisade.projects.v1.RepositoryChangesService/EditRepo":                             `{"idOrName":"name$1","tagsChanges":[{"operation":"SET_TAGS","tags":["new"]}],"aiScans":{"fullScan":true}}`,
	"/palisade.reporting.v1.ReportsService/GetReportFindings":                             `{"reportType":"REPORT_TYPE_TOTAL_OPEN"}`,
	"/palisade.rules.v1.RulesService/CreateRuleAlias":                                     `{"tool":"test","name":"new","canonical":"name$1"}`,
	"/palisade.rules.v1.RulesService/DeleteRule":                                          `{"ruleName":"name$1"}`,
	"/palisade.rules.v1.RulesService/GetRule":                                             `{"ruleName":"name$1"}`,
	"/palisade.notifications.v1.ChatAppService/HandleChatAppCallback":                     `{"state":"state","code":"code"}`,
	"/palisade.rules.v1.RulesService/ImportRules": `{"mode":"RULE_MODE_MONITOR","files":[$each({"name":"r#.yaml","text":
		"rules: [{id: r#, languages: [python], message: m, severity: ERROR, pattern: f()}]"})]}`,
	"/palisade.rules.v1.RulesService/ReleaseRules":          `{"names":[$each("name#")]}`,
	"/palisade.rules.v1.RulesService/UpdateRuleModes":       `{"names":[$each("name#")],"mode":"RULE_MODE_BLOCK"}`,
	"/palisade.rules.v1.ScannerRulesService/GetRuleConfig":  `{"ruleName":"name$1"}`,
	"/palisade.rules.v1.ScannerRulesService/GetRulePack":    `{"pack":"import"}`,
	"/palisade.rules.v1.ScannerRulesService/GetRuleSnippet": `{"snippet":"name$1"}`,
	"/palisade.rules.v1.ScannerRulesService/PublishRule": `{"visibility":"org_private","definition":{"rules":[{"id":"p","languages":["python"],
		"message":"m","severity":"ERROR","pattern":"f()"}]}}`,
	"/palisade.scans.v1.ScansService/RunManagedScans":                  `{"projects":[$each("name#")]}`,
	"/palisade.scans.v1.ScansV2Service/RetryScans":                     `{"scanIds":["$1","$2"]}`,
	"/palisade.findings.v1.SavedViewsService/CreateSavedView":          `{"name":"new","scope":"team"}`,
	"/palisade.scans.v1.PullRequestsService/UpdatePullRequestFeedback": `{"settings":{"statuses":true}}`,
	"/palisade.scans.v1.PullRequestsService/GetPullRequest":            `={"deploymentId":"$deployment","project":"name$1","ref":"refs/heads/main"}`,
	"/palisade.scans.v1.HeldClosesService/UpdateCloseLimits":           `{"project":"name$1","limits":{"share":70}}`,
	"/palisade.scans.v1.ReportFormatsService/DeleteReportFormat":       `{"name":"name$1"}`,
	"/palisade.scans.v1.ReportFormatsService/PutReportFormat":          `{"mapping":"{name: name$1, detect: {has: [a]}, tool: {name: t}, results: 'a[]', result: {rule: item.r}}"}`,
	"/palisade.scans.v1.ReportUploadsService/UploadReport":             `{"target":{"project":"name$1","ref":"refs/heads/main"},"chunk":"$report"}`,
	"/palisade.scans.v1.ScannerProtocolService/GetScanConfig":          `{"scanRequestId":"unique-id$1"}`,
	"/palisade.scans.v1.ScannerProtocolService/CompleteScan":           `{"scanId":"unique-id$1"}`,
	"/palisade.scans.v1.ScannerProtocolService/ReportScanError":        `{"scanId":"unique-id$1"}`,
	"/palisade.scans.v1.ScannerProtocolService/UploadScanResults":      `{"scanId":"unique-id$1"}`,
	"/palisade.scm.v1.ReviewCommentProductContentService/CreateReviewCommentProductContent": `{"reviewCommentProductContent":{"content":"text",
		"productContent":{"productType":"PRODUCT_SAST"}}}`,
	"/palisade.scm.v1.ReviewCommentProductContentService/UpdateReviewCommentProductContent": `{"reviewCommentProductContent":{"content":"text",
		"productContent":{"productType":"PRODUCT_SCA"}}}`,
	"/palisade.scm.v1.ScmAppsService/CreateAdoScmApp": `{"tenantId":"1d2c4a5b-0000-4000-8000-000000000001","clientId":"7a6b5c4d-0000-4000-8000-000000000002",
		"organizationName":"acme","projectName":"tools"}`,
	"/palisade.scm.v1.ScmAppsService/AddAdoScmProject":                        `{"scmAppId":"$1","organizationName":"acme","projectName":"tools"}`,
	"/palisade.scm.v1.ScmAppsService/CompleteScmAppRequest":                   `{"requestId":"request-id$1","code":"code"}`,
	"/palisade.scm.v1.ScmAppsService/GetGitHubAppStatus":                      `{"namespace":"namespace$1"}`,
	"/palisade.scm.v1.ScmAppsService/GetScmApp":                               `{"requestId":"request-id$1"}`,
	"/palisade.ticketing.v1.TicketingService/CreateTicket":                    `{"issue_type":"sast","issue_ids":$ids,"rules":["none"],"jira_project_id":"project$2"}`,
	"/palisade.ticketing.v1.TicketingService/LinkTicket":                      `{"issue_ids":$ids,"ticket_url":"https://tickets.acme.test/browse/SEC-1"}`,
	"/palisade.ticketing.v1.TicketingService/UnlinkTicket":                    `{"issue_ids":$ids}`,
	"/palisade.ticketing.v1.ExternalTicketingService/TicketingCreateTickets":  `={"deploymentId":"$deployment","ticketingInstanceId":"$1","issueIds":$ids}`,
	"/palisade.ticketing.v1.ExternalTicketingService/LinkExternalTicket":      `{"issueIds":$ids,"ticketUrl":"https://tickets.acme.test/browse/SEC-1"}`,
	"/palisade.ticketing.v1.ExternalTicketingService/UnlinkExternalTicket":    `{"issueIds":$ids}`,
	"/palisade.ticketing.v1.ExternalTicketingService/CreateTicketingInstance": `={"deploymentId":"$deployment","instance":{"instanceType":"github"},"token":"t"}`,
	"/palisade.ticketing.v1.ExternalTicketingService/UpdateTicketingInstance": `={"deploymentId":"$deployment","ticketingInstanceId":"$1","projectId":"SEC"}`,
	"/palisade.scm.v1.ScmService/CreateScmConfig":                             `{"type":"SCM_TYPE_GITHUB","namespace":"new","scmConfigId":"0"}`,
	"/palisade.supplychain.v1.MalwareFirewallService/CheckPackageInstalls":    `{"user":"u","scanner":"s","packages":[$each({"ecosystem":"npm","package":"package#","version":"1.0.0"})]}`,
	"/palisade.supplychain.v1.MalwareFirewallService/ImportAdvisories": `{"advisories":[$each({"id":"MAL-#","modified":"2026-01-01T00:00:00Z",
		"affected":[{"package":{"ecosystem":"npm","name":"bad#"},"versions":["1.0.0"]}]})]}`,
	"/palisade.supplychain.v1.MalwareFirewallService/LookUpPackage": `{"ecosystem":"npm","package":"package$1","version":"1.0.0"}`,
	"/palisade.supplychain.v1.PackageManagerConfigurationsService/PostPackageManagerAuthCredentials": `{"packageManagerConfigForInsert":{"config":{"name":"new",
		"url":"https://repo.acme.test/npm/","requiresAuth":true,"ecosystem":"npm"},"npm":{"token":"t0"}}}`,
	"/palisade.supplychain.v1.SbomsService/GetSbomExport":                           `{"taskToken":"x.y.z"}`,
	"/palisade.supplychain.v1.SupplyChainService/ListLockfilesForDependencies":      `{"pageSize":100}`,
	"/palisade.supplychain.v1.SupplyChainService/ListLockfilesForDependenciesV1":    `{"pageSize":100}`,
	"/palisade.supplychain.v1.SupplyChainService/ListRepositoriesForDependencies":   `{"pageSize":100}`,
	"/palisade.supplychain.v1.SupplyChainService/ListRepositoriesForDependenciesV1": `{"pageSize":100}`,
	"/palisade.workflows.v1.AgenticIssuesService/TriageIssue":                       `{"triageState":"TRIAGE_STATE_REVIEWING"}`,
	"/palisade.workflows.v1.WorkflowCatalogService/DeleteWorkflowType":              `{"name":"name$1"}`,
	"/palisade.workflows.v1.WorkflowCatalogService/GetWorkflowType":                 `{"name":"name$1"}`,
	"/palisade.workflows.v1.WorkflowCatalogService/PublishWorkflowType":             `{"definition":"name: published\ntargetType: deployment\nsteps: [{name: start}]"}`,
	"/palisade.workflows.v1.WorkflowCatalogService/UpdateWorkflowType":              `{"name":"name$1","enabled":true}`,
	"/palisade.workflows.v1.WorkflowRunsService/TriggerWorkflowJob":                 `{"workflowType":"absent"}`,
	"/palisade.workflows.v1.WorkflowTasksService/CompleteWorkflowTask":              `{"claimToken":"x","result":"WORKFLOW_TASK_RESULT_SUCCEEDED"}`,
	"/palisade.workflows.v1.WorkflowTasksService/HeartbeatWorkflowTask":             `{"claimToken":"x"}`,
	"/palisade.workflows.v1.WorkflowTasksService/PutWorkflowArtifact":               `{"claimToken":"x","name":"a.json"}`,
}

// request builds a request of an RPC about the first row of each table, or about all rows where it takes a list of ids.
func (f *filling) request(t *testing.T, rpc operation) *dynamicpb.Message {
	t.Helper()
	message := dynamicpb.NewMessage(rpc.descriptor.Input())
	fields := rpc.descriptor.Input().Fields()
	for i := range fields.Len() {
		if d := fields.Get(i); isID(d) || rulesOf(d).GetRequired() {
			f.set(message, d)
		}
	}
	text, ok := rpcRequests[rpc.name]
	if whole, only := strings.CutPrefix(text, "="); only {
		text = whole
		message = dynamicpb.NewMessage(rpc.descriptor.Input())
	}
	if ok {
		f.merge(t, message, text)
	}
	return message
}

// merge adds JSON fields to a request.
func (f *filling) merge(t *testing.T, message *dynamicpb.Message, text string) {
	t.Helper()
	more := message.New().Interface()
	text = eachRow.ReplaceAllStringFunc(text, func(each string) string {
		items := make([]string, f.rows)
		for i := range items {
			items[i] = strings.ReplaceAll(eachRow.FindStringSubmatch(each)[1], "#", fmt.Sprint(f.base+1+int64(i)))
		}
		return strings.Join(items, ",")
	})
	text = strings.NewReplacer("$1", fmt.Sprint(f.base+1), "$2", fmt.Sprint(f.base+2), "$ids", f.ids(), "$slug", f.tenant.Slug,
		"$uuid", fmt.Sprintf("0b5b1c1e-6f0e-4b60-9d31-%012d", f.base), "$report", f.report(), "$deployment", fmt.Sprint(f.tenant.DeploymentID)).Replace(text)
	if err := protojson.Unmarshal([]byte(text), more); err != nil {
		t.Fatalf("%s: %s: %v", message.Descriptor().FullName(), text, err)
	}
	more.ProtoReflect().Range(func(d protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		message.Set(d, value)
		return true
	})
}

// report is a report with one result per row, encoded as bytes in JSON.
func (f *filling) report() string {
	results := make([]string, f.rows)
	for i := range results {
		results[i] = fmt.Sprintf(`{"ruleId":"r%d","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"f%d.py"},
			"region":{"startLine":1,"snippet":{"text":"f(%d)"}}}}]}`, i, i, i)
	}
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"test"}},"results":[%s]}]}`,
		strings.Join(results, ",")))
}

// eachRow matches text that is repeated for each row.
var eachRow = regexp.MustCompile(`(?s)\$each\((.*)\)`)

// isID reports that a field refers to rows or to the deployment.
func isID(d protoreflect.FieldDescriptor) bool {
	name := string(d.Name())
	return strings.HasSuffix(name, "_id") || name == "id" || d.IsList() && (strings.HasSuffix(name, "_ids") || name == "ids") || name == "deployment_slug"
}

// set gives a field a value that selects something.
func (f *filling) set(message protoreflect.Message, d protoreflect.FieldDescriptor) {
	switch {
	case d.IsMap():
	case d.IsList():
		list := message.Mutable(d).List()
		rows := int64(2)
		if isID(d) {
			rows = f.rows
		}
		for i := range rows {
			list.Append(f.elementValue(list.NewElement, d, i))
		}
	default:
		message.Set(d, f.elementValue(func() protoreflect.Value { return message.NewField(d) }, d, 0))
	}
}

// elementValue is a value of a field, or of one item, for row i.
func (f *filling) elementValue(empty func() protoreflect.Value, d protoreflect.FieldDescriptor, i int64) protoreflect.Value {
	row := f.base + 1 + i
	switch d.Kind() {
	case protoreflect.Int64Kind, protoreflect.Uint64Kind:
		number := row
		if d.Name() == "deployment_id" {
			number = f.tenant.DeploymentID
		} else if !isID(d) {
			number = max(1, rulesOf(d).GetInt64().GetGte())
		}
		if d.Kind() == protoreflect.Uint64Kind {
			return protoreflect.ValueOfUint64(uint64(number))
		}
		return protoreflect.ValueOfInt64(number)
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(max(1, rulesOf(d).GetInt32().GetGte()))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(max(1, rulesOf(d).GetUint32().GetGte()))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(d.Enum().Values().Get(min(1+int(i), d.Enum().Values().Len()-1)).Number())
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(f.text(d, i))
	}
	return empty()
}

// text is a value of a text field for row i.
func (f *filling) text(d protoreflect.FieldDescriptor, i int64) string {
	rules := rulesOf(d).GetString()
	if items := rulesOf(d).GetRepeated().GetItems(); items != nil {
		rules = items.GetString()
	}
	allowed := slices.DeleteFunc(slices.Clone(rules.GetIn()), func(word string) bool { return word == "" })
	row := strconv.FormatInt(f.base+1+i, 10)
	switch {
	case len(allowed) > 0:
		return allowed[i%int64(len(allowed))]
	case d.Name() == "deployment_slug":
		return f.tenant.Slug
	case isID(d):
		return row
	}
	return "name" + row
}

func rulesOf(d protoreflect.FieldDescriptor) *validate.FieldRules {
	rules, _ := proto.GetExtension(d.Options(), validate.E_Field).(*validate.FieldRules)
	return rules
}

// call sends a request as an administrator, with a kind of credential that the RPC accepts. rows is the length of the
// longest list in the response.
func (f *filling) call(t *testing.T, rpc operation, request proto.Message) (answer *status.Status, rows int) {
	t.Helper()
	credential := f.admin
	if slices.Contains(rpc.rule.GetSchemes(), optionsv1.Scheme_SCHEME_WEB_TOKEN) {
		credential = f.tenant.Token
	}
	ctx := f.server.Context(t, credential)
	if rpc.descriptor.IsStreamingClient() || rpc.descriptor.IsStreamingServer() {
		return status.Convert(call(ctx, f.server.Conn, rpc, request)), 0
	}
	response := dynamicpb.NewMessage(rpc.descriptor.Output())
	err := f.server.Conn.Invoke(ctx, rpc.name, request, response)
	return status.Convert(err), longest(response)
}

// longest is the length of the longest list of messages in a message, including inner messages.
func longest(m protoreflect.Message) (rows int) {
	m.Range(func(d protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case d.IsMap():
			rows = max(rows, value.Map().Len())
		case d.IsList():
			rows = max(rows, value.List().Len())
		case d.Kind() == protoreflect.MessageKind:
			rows = max(rows, longest(value.Message()))
		}
		return true
	})
	return rows
}
