package identity

import (
	"context"
	"strconv"
	"strings"
	"unicode"

	"github.com/gosimple/slug"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/services/internal/apierr"
)

// maxTeamSlug is the maximum length of a slug without its number. Transliteration makes several letters of one
// character.
const maxTeamSlug = 100

// nameTeam validates a name and derives a unique slug. The caller holds the lock of teams (see lockTeams). It returns
// INVALID_ARGUMENT for an unreadable name, and ALREADY_EXISTS. id is the team to rename, 0 for a new one.
func nameTeam(ctx context.Context, tx *ent.Tx, id int64, name string) (slugOfName string, err error) {
	if strings.TrimSpace(name) == "" || strings.ContainsFunc(name, unicode.IsControl) {
		return "", apierr.InvalidArgument("team.name", "team.name must have a visible character and no control characters, got %q", name)
	}
	taken, err := tx.Team.Query().Where(team.Name(name), team.IDNEQ(id)).Exist(ctx)
	if err != nil {
		return "", err
	}
	if taken {
		return "", apierr.AlreadyExists("team.name: a team named %q exists", name)
	}
	base := teamSlug(name)
	rows, err := tx.Team.Query().Where(team.SlugHasPrefix(base), team.IDNEQ(id)).Select(team.FieldSlug).All(ctx)
	if err != nil {
		return "", err
	}
	used := make(map[string]bool, len(rows))
	for _, row := range rows {
		used[row.Slug] = true
	}
	free := base
	for n := 2; used[free]; n++ {
		free = base + "-" + strconv.Itoa(n)
	}
	return free, nil
}

// teamSlug is the slug of a name; a name without an ASCII form gets a common one.
func teamSlug(name string) string {
	base := slug.Make(name)
	if base = strings.Trim(base[:min(len(base), maxTeamSlug)], "-_"); base == "" {
		return "team"
	}
	return base
}
