package server

import "github.com/palisade/palisade/services/internal/gateway"

// Spellings are the paths that have two spellings.
func Spellings() []gateway.Spelling { return spellings }

// spellings are the paths that the contract names differently than the API that existing clients were written for.
// Both are served. docs/compatibility.md explains the choice.
var spellings = []gateway.Spelling{
	{Method: "POST", Contract: "/api/agent/deployments/{}/has_deep_engine", Original: "/api/agent/deployments/{}/has_deepsemgrep"},

	{Method: "DELETE", Contract: "/api/agent/deployments/{}/chat-app/installations", Original: "/api/agent/deployments/{}/slack/installations"},
	{Method: "GET", Contract: "/api/agent/deployments/{}/chat-app/channel_mappings", Original: "/api/agent/deployments/{}/slack/channel_mappings"},
	{Method: "GET", Contract: "/api/agent/deployments/{}/chat-app/channels", Original: "/api/agent/deployments/{}/slack/channels"},
	{Method: "GET", Contract: "/api/agent/deployments/{}/chat-app/install", Original: "/api/agent/deployments/{}/slack/install"},
	{Method: "GET", Contract: "/api/agent/deployments/{}/chat-app/installations", Original: "/api/agent/deployments/{}/slack/installations"},
	{Method: "POST", Contract: "/api/agent/deployments/{}/chat-app/oauth/callback", Original: "/api/agent/deployments/{}/slack/oauth/callback"},

	{Method: "DELETE", Contract: "/api/notifications/deployments/{}/cloud-posture/{}", Original: "/api/notifications/deployments/{}/wiz/{}"},
	{Method: "GET", Contract: "/api/notifications/deployments/{}/cloud-posture", Original: "/api/notifications/deployments/{}/wiz"},
	{Method: "GET", Contract: "/api/notifications/deployments/{}/cloud-posture/{}", Original: "/api/notifications/deployments/{}/wiz/{}"},
	{Method: "POST", Contract: "/api/notifications/deployments/{}/cloud-posture", Original: "/api/notifications/deployments/{}/wiz"},
	{Method: "POST", Contract: "/api/notifications/deployments/{}/cloud-posture/validate", Original: "/api/notifications/deployments/{}/wiz/validate"},
	{Method: "PUT", Contract: "/api/notifications/deployments/{}/cloud-posture/{}", Original: "/api/notifications/deployments/{}/wiz/{}"},

	{Method: "GET", Contract: "/api/infra-config/bootstrap-managed-scan-vpc", Original: "/api/infra-config/bootstrap-sms-vpc"},
	{Method: "GET", Contract: "/api/v1/bootstrap-managed-scan-vpc", Original: "/api/v1/bootstrap-sms-vpc"},
}
