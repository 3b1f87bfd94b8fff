// Package column holds the types of JSON columns, apart from the schema because the generated code imports them.
package column

import "encoding/json"

// AuditChange is one object that a call or a job changed.
type AuditChange struct {
	// Kind is the object's noun, ID its id.
	Kind string `json:"kind"`
	ID   string `json:"id"`
	// Before and After are JSON with secrets redacted; Before is empty for what was created, After for what was deleted.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// ScmSubscription is a webhook at a source-code host.
type ScmSubscription struct {
	// RemoteID is the host's id of the webhook.
	RemoteID string `json:"remote_id"`
	// URL is what the webhook watches: the organization, group or repository at the host.
	URL string `json:"url"`
	// Events are the host's words.
	Events []string `json:"events"`
}

// TicketProject maps projects to a project of an issue tracker.
type TicketProject struct {
	// Repository is the name of a project, or a pattern.
	Repository string `json:"repository"`
	// Project is the tracker's.
	Project string `json:"project"`
}
