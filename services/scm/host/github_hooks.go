package host

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/go-github/v84/github"
)

// gitHubEvents are GitHub's event names.
var gitHubEvents = map[Event]string{
	PullRequestEvent: "pull_request", ReviewCommentEvent: "pull_request_review_comment", RepositoryEvent: "repository", BranchDeletedEvent: "delete",
}

// organization rejects namespaces without webhooks of their own.
func (h *gitHub) organization(ctx context.Context, namespace string) (*github.User, error) {
	account, _, err := h.account(ctx, namespace)
	if err != nil {
		return nil, err
	}
	if entity(account) != Org {
		return nil, &Error{Kind: Unsupported, Text: "GitHub has webhooks for organizations, not for users: " + strconv.Quote(namespace) + " is a user"}
	}
	return account, nil
}

// Subscriptions lists the webhooks of an organization.
func (h *gitHub) Subscriptions(ctx context.Context, namespace string) ([]Subscription, error) {
	org, err := h.organization(ctx, namespace)
	if err != nil {
		return nil, err
	}
	hooks, err := collect(paged(gitHubPages(func(n int) ([]*github.Hook, *github.Response, error) {
		return h.client.Organizations.ListHooks(ctx, org.GetLogin(), &github.ListOptions{Page: n, PerPage: pageSize})
	})))
	if err != nil {
		return nil, err
	}
	out := make([]Subscription, len(hooks))
	for i, hook := range hooks {
		if out[i], err = h.subscription(org, hook); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Subscribe creates an organization's webhook.
func (h *gitHub) Subscribe(ctx context.Context, namespace string, hook Webhook) (Subscription, error) {
	org, err := h.organization(ctx, namespace)
	if err != nil {
		return Subscription{}, err
	}
	request := gitHubHook(hook)
	request.Name = github.Ptr("web") // GitHub's only kind
	made, err := gitHubAnswer(h.client.Organizations.CreateHook(ctx, org.GetLogin(), request))
	if err != nil {
		return Subscription{}, err
	}
	return h.subscription(org, made)
}

// UpdateWebhook changes an organization's webhook.
func (h *gitHub) UpdateWebhook(ctx context.Context, namespace, id string, hook Webhook) (Subscription, error) {
	org, err := h.organization(ctx, namespace)
	if err != nil {
		return Subscription{}, err
	}
	number, err := hookID(id)
	if err != nil {
		return Subscription{}, err
	}
	changed, err := gitHubAnswer(h.client.Organizations.EditHook(ctx, org.GetLogin(), number, gitHubHook(hook)))
	if err != nil {
		return Subscription{}, err
	}
	return h.subscription(org, changed)
}

// Unsubscribe deletes an organization's webhook.
func (h *gitHub) Unsubscribe(ctx context.Context, namespace, id string) error {
	if err := checkGitHubName("organization", namespace); err != nil {
		return err
	}
	number, err := hookID(id)
	if err != nil {
		return err
	}
	_, err = h.client.Organizations.DeleteHook(ctx, namespace, number)
	return ignoreNotFound(gitHubError(err))
}

func gitHubHook(hook Webhook) *github.Hook {
	events := make([]string, len(hook.Events))
	for i, event := range hook.Events {
		events[i] = gitHubEvents[event]
	}
	return &github.Hook{
		Config: &github.HookConfig{
			URL: &hook.Callback, Secret: &hook.Secret, ContentType: github.Ptr("json"), InsecureSSL: github.Ptr("0"),
		},
		Events: events, Active: github.Ptr(true),
	}
}

func (h *gitHub) subscription(org *github.User, hook *github.Hook) (Subscription, error) {
	if hook.GetID() == 0 || hook.Config == nil || hook.Events == nil {
		return Subscription{}, malformed("the host's answer is not a webhook of GitHub", nil)
	}
	events := make([]string, len(hook.Events))
	for i, event := range hook.Events {
		events[i] = printable(event)
	}
	slices.Sort(events)
	return Subscription{
		ID: strconv.FormatInt(hook.GetID(), 10), Callback: hook.GetConfig().GetURL(), URL: h.web + "/" + org.GetLogin(),
		Events: events, Active: hook.GetActive(),
	}, nil
}

// hookID parses a webhook's id; both hosts use numbers.
func hookID(id string) (int64, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 {
		return 0, &Error{Kind: NotFound, Text: "the host has no webhook " + strconv.Quote(clip(id)), cause: err}
	}
	return number, nil
}

// ignoreNotFound treats not found as deleted.
func ignoreNotFound(err error) error {
	if Is(err, NotFound) {
		return nil
	}
	return err
}
