package host

import (
	"context"
	"slices"
	"strconv"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// groupOf rejects namespaces without webhooks of their own.
func (h *gitLab) groupOf(ctx context.Context, namespace string) (*gitlab.Group, error) {
	of, err := h.owner(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if of.group == nil {
		return nil, &Error{Kind: Unsupported, Text: "GitLab has webhooks for groups, not for users: " + strconv.Quote(namespace) + " is a user"}
	}
	return of.group, nil
}

// Subscriptions lists the webhooks of a group.
func (h *gitLab) Subscriptions(ctx context.Context, namespace string) ([]Subscription, error) {
	group, err := h.groupOf(ctx, namespace)
	if err != nil {
		return nil, err
	}
	hooks, err := collect(paged(gitLabPages(func(options gitlab.ListOptions) ([]*gitlab.GroupHook, *gitlab.Response, error) {
		return h.client.Groups.ListGroupHooks(group.ID, &gitlab.ListGroupHooksOptions{ListOptions: options}, gitlab.WithContext(ctx))
	})))
	if err != nil {
		return nil, err
	}
	out := make([]Subscription, len(hooks))
	for i, hook := range hooks {
		if out[i], err = gitLabSubscription(group, hook); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Subscribe creates a group's webhook.
func (h *gitLab) Subscribe(ctx context.Context, namespace string, hook Webhook) (Subscription, error) {
	group, err := h.groupOf(ctx, namespace)
	if err != nil {
		return Subscription{}, err
	}
	on := func(event Event) *bool { return gitlab.Ptr(slices.Contains(hook.Events, event)) }
	made, err := gitLabAnswer(h.client.Groups.AddGroupHook(group.ID, &gitlab.AddGroupHookOptions{
		URL: &hook.Callback, Token: &hook.Secret, EnableSSLVerification: gitlab.Ptr(true),
		PushEvents: on(BranchDeletedEvent), ProjectEvents: on(RepositoryEvent),
		MergeRequestsEvents: on(PullRequestEvent), NoteEvents: on(ReviewCommentEvent),
	}, gitlab.WithContext(ctx)))
	if err != nil {
		return Subscription{}, err
	}
	return gitLabSubscription(group, made)
}

// UpdateWebhook changes a group's webhook.
func (h *gitLab) UpdateWebhook(ctx context.Context, namespace, id string, hook Webhook) (Subscription, error) {
	group, err := h.groupOf(ctx, namespace)
	if err != nil {
		return Subscription{}, err
	}
	number, err := hookID(id)
	if err != nil {
		return Subscription{}, err
	}
	on := func(event Event) *bool { return gitlab.Ptr(slices.Contains(hook.Events, event)) }
	changed, err := gitLabAnswer(h.client.Groups.EditGroupHook(group.ID, number, &gitlab.EditGroupHookOptions{
		URL: &hook.Callback, Token: &hook.Secret, EnableSSLVerification: gitlab.Ptr(true),
		PushEvents: on(BranchDeletedEvent), ProjectEvents: on(RepositoryEvent),
		MergeRequestsEvents: on(PullRequestEvent), NoteEvents: on(ReviewCommentEvent),
	}, gitlab.WithContext(ctx)))
	if err != nil {
		return Subscription{}, err
	}
	return gitLabSubscription(group, changed)
}

// Unsubscribe deletes a group's webhook.
func (h *gitLab) Unsubscribe(ctx context.Context, namespace, id string) error {
	number, err := hookID(id)
	if err != nil {
		return err
	}
	_, err = h.client.Groups.DeleteGroupHook(namespace, number, gitlab.WithContext(ctx))
	return ignoreNotFound(gitLabError(err))
}

// gitLabSubscription converts a webhook. Event names are the ones in GitLab's settings. GitLab disables a webhook that
// failed too often and reports that in alert_status.
func gitLabSubscription(group *gitlab.Group, hook *gitlab.GroupHook) (Subscription, error) {
	if hook.ID == 0 || hook.URL == "" {
		return Subscription{}, malformed("the host's answer is not a webhook of GitLab", nil)
	}
	var events []string
	for name, on := range map[string]bool{
		"merge_requests_events": hook.MergeRequestsEvents, "note_events": hook.NoteEvents, "push_events": hook.PushEvents,
		"tag_push_events": hook.TagPushEvents, "issues_events": hook.IssuesEvents, "job_events": hook.JobEvents,
		"pipeline_events": hook.PipelineEvents, "releases_events": hook.ReleasesEvents, "subgroup_events": hook.SubGroupEvents,
		"member_events": hook.MemberEvents, "project_events": hook.ProjectEvents, "deployment_events": hook.DeploymentEvents,
	} {
		if on {
			events = append(events, name)
		}
	}
	slices.Sort(events)
	return Subscription{
		ID: strconv.FormatInt(hook.ID, 10), Callback: hook.URL, URL: printable(group.WebURL), Events: events,
		Active: hook.AlertStatus == "" || hook.AlertStatus == "executable",
	}, nil
}
