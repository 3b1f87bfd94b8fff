package host

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// azureHookUser is the user name that service hooks send with the secret as password.
const azureHookUser = "palisade"

// azureEvents are the event types of Azure DevOps. It has one subscription for each. The comment event has the pull
// request only in version 2.0.
var azureEvents = map[Event][]string{
	PullRequestEvent:   {"git.pullrequest.created", "git.pullrequest.merged", "git.pullrequest.updated"},
	ReviewCommentEvent: {"ms.vss-code.git-pullrequest-comment-event"},
	BranchDeletedEvent: {"git.push"},
}

func azureEventVersion(event string) string {
	if event == "ms.vss-code.git-pullrequest-comment-event" {
		return "2.0"
	}
	return "1.0"
}

// azureSubscription is a subscription of a service hook. The host shows secrets as asterisks.
type azureSubscription struct {
	ID               string            `json:"id,omitempty"`
	Status           string            `json:"status,omitempty"`
	PublisherID      string            `json:"publisherId"`
	EventType        string            `json:"eventType"`
	ResourceVersion  string            `json:"resourceVersion"`
	ConsumerID       string            `json:"consumerId"`
	ConsumerActionID string            `json:"consumerActionId"`
	PublisherInputs  map[string]string `json:"publisherInputs"`
	ConsumerInputs   map[string]string `json:"consumerInputs"`
}

// hooked is a project with its service hooks.
type hooked struct {
	at      azurePlace
	project *azureProject
	url     string
	all     []*azureSubscription
}

// hooksOf reads the service hooks of a project that send requests.
func (h *azure) hooksOf(ctx context.Context, namespace string) (*hooked, error) {
	at, err := azurePlaceOf(namespace, 1, 2)
	if err != nil {
		return nil, err
	}
	if at.project == "" {
		return nil, &Error{Kind: Unsupported, Text: "Azure DevOps has service hooks for projects, not for organizations: connect " +
			strconv.Quote(at.organization+"/project")}
	}
	project, err := h.project(ctx, at)
	if err != nil {
		return nil, err
	}
	of := &hooked{at: at, project: project, url: h.web + (&url.URL{Path: "/" + at.organization + "/" + printable(project.Name)}).EscapedPath()}
	list, err := azureItems[azureSubscription](ctx, h, at.of("hooks/subscriptions"), url.Values{"publisherId": {"tfs"}, "consumerId": {"webHooks"}})
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.ID == "" || one.EventType == "" || one.PublisherInputs == nil || one.ConsumerInputs == nil {
			return nil, malformed("the host's answer is not a list of service hooks of Azure DevOps", nil)
		}
		if strings.EqualFold(one.PublisherInputs["projectId"], project.ID) && one.ConsumerInputs["url"] != "" {
			of.all = append(of.all, one)
		}
	}
	return of, nil
}

// calling are the subscriptions that call a URL.
func (of *hooked) calling(callback string) (list []*azureSubscription) {
	for _, one := range of.all {
		if one.ConsumerInputs["url"] == callback {
			list = append(list, one)
		}
	}
	return list
}

// subscription is the webhook of all subscriptions that call a URL. The URL is its id.
func (of *hooked) subscription(callback string) Subscription {
	s := Subscription{ID: callback, Callback: callback, URL: of.url, Active: true}
	for _, one := range of.calling(callback) {
		s.Events = append(s.Events, one.EventType)
		s.Active = s.Active && (one.Status == "" || one.Status == "enabled" || one.Status == "onProbation")
	}
	slices.Sort(s.Events)
	s.Events = slices.Compact(s.Events)
	return s
}

// Subscriptions lists the URLs that the service hooks of a project call, each as one webhook.
func (h *azure) Subscriptions(ctx context.Context, namespace string) ([]Subscription, error) {
	of, err := h.hooksOf(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var out []Subscription
	for _, one := range of.all {
		callback := one.ConsumerInputs["url"]
		if !slices.ContainsFunc(out, func(s Subscription) bool { return s.ID == callback }) {
			out = append(out, of.subscription(callback))
		}
	}
	return out, nil
}

// Subscribe creates a subscription for each event.
func (h *azure) Subscribe(ctx context.Context, namespace string, hook Webhook) (Subscription, error) {
	of, err := h.hooksOf(ctx, namespace)
	if err != nil {
		return Subscription{}, err
	}
	return h.establish(ctx, of, hook.Callback, hook)
}

// UpdateWebhook changes the subscriptions that call a URL.
func (h *azure) UpdateWebhook(ctx context.Context, namespace, id string, hook Webhook) (Subscription, error) {
	of, err := h.hooksOf(ctx, namespace)
	if err != nil {
		return Subscription{}, err
	}
	if len(of.calling(id)) == 0 {
		return Subscription{}, &Error{Kind: NotFound, Text: "the host has no webhook that calls " + strconv.Quote(clip(id))}
	}
	return h.establish(ctx, of, id, hook)
}

// establish leaves exactly one subscription for each event, with the secret. If it fails, a repetition continues.
func (h *azure) establish(ctx context.Context, of *hooked, id string, hook Webhook) (Subscription, error) {
	var wanted []string
	for _, event := range hook.Events {
		wanted = append(wanted, azureEvents[event]...)
	}
	slices.Sort(wanted)
	existing := of.calling(id)
	slices.SortFunc(existing, func(a, b *azureSubscription) int { return cmp.Compare(a.EventType, b.EventType) })
	others := slices.DeleteFunc(of.all, func(s *azureSubscription) bool { return slices.Contains(existing, s) })
	of.all = others
	for _, event := range wanted {
		body := of.wanted(event, hook)
		method, path := http.MethodPost, of.at.of("hooks/subscriptions")
		if i := slices.IndexFunc(existing, func(s *azureSubscription) bool { return s.EventType == event }); i >= 0 {
			body.ID = existing[i].ID
			method, path = http.MethodPut, path+"/"+url.PathEscape(existing[i].ID)
			existing = slices.Delete(existing, i, i+1)
		}
		made := &azureSubscription{}
		if err := h.call(ctx, method, path, nil, body, made); err != nil {
			return Subscription{}, err
		}
		if made.ID == "" || made.EventType == "" || made.ConsumerInputs["url"] == "" {
			return Subscription{}, malformed("the host's answer is not a service hook of Azure DevOps", nil)
		}
		of.all = append(of.all, made)
	}
	for _, surplus := range existing {
		if err := h.unsubscribe(ctx, of.at, surplus.ID); err != nil {
			return Subscription{}, err
		}
	}
	return of.subscription(hook.Callback), nil
}

// wanted is the subscription of an event.
func (of *hooked) wanted(event string, hook Webhook) azureSubscription {
	return azureSubscription{
		PublisherID: "tfs", EventType: event, ResourceVersion: azureEventVersion(event), ConsumerID: "webHooks", ConsumerActionID: "httpRequest",
		PublisherInputs: map[string]string{"projectId": of.project.ID},
		ConsumerInputs: map[string]string{
			"url": hook.Callback, "basicAuthUsername": azureHookUser, "basicAuthPassword": hook.Secret, "acceptUntrustedCerts": "false",
			"resourceDetailsToSend": "all", "messagesToSend": "none", "detailedMessagesToSend": "none",
		},
	}
}

func (h *azure) unsubscribe(ctx context.Context, at azurePlace, id string) error {
	return ignoreNotFound(h.call(ctx, http.MethodDelete, at.of("hooks/subscriptions/"+url.PathEscape(id)), nil, nil, nil))
}

// Unsubscribe deletes the subscriptions that call a URL.
func (h *azure) Unsubscribe(ctx context.Context, namespace, id string) error {
	of, err := h.hooksOf(ctx, namespace)
	if err != nil {
		return ignoreNotFound(err)
	}
	for _, one := range of.calling(id) {
		if err := h.unsubscribe(ctx, of.at, one.ID); err != nil {
			return err
		}
	}
	return nil
}
