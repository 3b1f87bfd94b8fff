package identity

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

// grantsOf returns the caller's deployments by id.
func grantsOf(caller *access.Principal) []access.Grant {
	return slices.SortedFunc(slices.Values(caller.Grants), func(a, b access.Grant) int { return cmp.Compare(a.DeploymentID, b.DeploymentID) })
}

func deploymentsOf(caller *access.Principal) []int64 {
	ids := make([]int64, len(caller.Grants))
	for i, g := range caller.Grants {
		ids[i] = g.DeploymentID
	}
	return ids
}

func convertUser(row *ent.User, caller *access.Principal) *identityv1.User {
	details := &identityv1.UserAuthDetails{ProviderId: strconv.FormatInt(row.ID, 10), ProviderType: providerOf(row), Current: true}
	if row.Subject != nil && row.Issuer != nil {
		details.ProviderId, details.SourceId = *row.Subject, *row.Issuer
	}
	out := &identityv1.User{Id: row.ID, Name: row.Name, Email: row.Email, Login: row.Email, AuthDetails: []*identityv1.UserAuthDetails{details}}
	if grants := grantsOf(caller); len(grants) > 0 {
		out.OrgRole = string(grants[0].Role)
	}
	return out
}

// providerOf returns the kind of a user's identity provider in the contract's words
// (auth.v1.DeploymentIdentity.sourceType).
func providerOf(row *ent.User) string {
	if row.Subject != nil {
		return "sso"
	}
	return "simple"
}

// hostWord is the contract's word for a kind of source-code host; "" if there is none.
func hostWord(scmType string) string {
	for _, word := range []string{"github", "gitlab"} {
		if strings.HasPrefix(scmType, "SCM_TYPE_"+strings.ToUpper(word)) {
			return word
		}
	}
	return ""
}

// settingsOf returns a user's settings: the stored ones, the defaults, and values from the row.
func settingsOf(row *ent.User) (*identityv1.UserSettings, error) {
	out := &identityv1.UserSettings{}
	if err := proto.Unmarshal(row.Settings, out); err != nil {
		return nil, fmt.Errorf("settings of user %d: %w", row.ID, err)
	}
	for _, state := range []*identityv1.TourState{&out.FindingsTourState, &out.SupplyChainTourState, &out.SupplyChainFindingsTourState} {
		if *state == 0 {
			*state = identityv1.TourState_TOUR_STATE_INCOMPLETE
		}
	}
	out.AvailableEmails = []*identityv1.UserEmail{{Email: row.Email, Verified: row.Subject != nil && !strings.HasSuffix(row.Email, "@unverified.invalid")}}
	if !slices.ContainsFunc(out.GetAvailableEmails(), func(e *identityv1.UserEmail) bool { return e.GetEmail() == out.GetPrimaryEmail() }) {
		out.PrimaryEmail = row.Email
	}
	for _, e := range out.GetAvailableEmails() {
		e.Primary = e.GetEmail() == out.GetPrimaryEmail()
	}
	return out, nil
}

// stored returns the settings without the values that the row has.
func stored(settings *identityv1.UserSettings) *identityv1.UserSettings {
	out := proto.CloneOf(settings)
	out.AvailableEmails = nil
	return out
}

// patchSettings changes the settings named in the request. The only error is an e-mail address that the user does not
// have.
func patchSettings(settings *identityv1.UserSettings, r *identityv1.PatchUserSettingsRequest) error {
	if r.PrimaryEmail != nil {
		if err := choosePrimary(settings, r.GetPrimaryEmail()); err != nil {
			return err
		}
	}
	for field, given := range map[*bool]*bool{
		&settings.HasAcceptedToc: r.HasAcceptedToc, &settings.Subscribe: r.Subscribe,
		&settings.ContactAboutExperiments: r.ContactAboutExperiments, &settings.HasCompletedFindingsTour: r.HasCompletedFindingsTour,
		&settings.HasCompletedSupplyChainTour: r.HasCompletedSupplyChainTour,
	} {
		if given != nil {
			*field = *given
		}
	}
	for field, given := range map[*identityv1.TourState]identityv1.TourState{
		&settings.FindingsTourState: r.GetFindingsTourState(), &settings.SupplyChainTourState: r.GetSupplyChainTourState(),
		&settings.SupplyChainFindingsTourState: r.GetSupplyChainFindingsTourState(),
	} {
		if given != 0 {
			*field = given
		}
	}
	for _, given := range r.GetTourStates() {
		setTour(settings, given)
	}
	return nil
}

func choosePrimary(settings *identityv1.UserSettings, email string) error {
	words := make([]string, 0, 1)
	chosen := false
	for _, e := range settings.GetAvailableEmails() {
		words = append(words, e.GetEmail())
		if e.Primary = strings.EqualFold(e.GetEmail(), email); e.GetPrimary() {
			settings.PrimaryEmail, chosen = e.GetEmail(), true
		}
	}
	if !chosen {
		return apierr.InvalidArgument("primaryEmail", "primaryEmail must be one of availableEmails, %s, got %s", strings.Join(words, ", "), apierr.Quote(email))
	}
	return nil
}

// setTour sets the entry of an id; entries are sorted by id.
func setTour(settings *identityv1.UserSettings, given *identityv1.TourStateEntry) {
	at, found := slices.BinarySearchFunc(settings.GetTourStates(), given.GetId(), func(e *identityv1.TourStateEntry, id identityv1.TourId) int {
		return cmp.Compare(e.GetId(), id)
	})
	if found {
		settings.TourStates[at].State = given.GetState()
		return
	}
	entry := &identityv1.TourStateEntry{Id: given.GetId(), State: given.GetState()}
	settings.TourStates = slices.Insert(settings.TourStates, at, entry)
}
