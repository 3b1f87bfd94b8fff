package access

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
)

// TeamRight is what a user may do in the projects of a team. Each right includes the rights before it.
type TeamRight int

// The rights of the roles TEAM_ROLE_READONLY, TEAM_ROLE_MEMBER and TEAM_ROLE_MANAGER of the contract.
const (
	TeamRead TeamRight = iota + 1
	TeamTriage
	TeamManage
)

// Teams are the teams of a user: the teams that the user is in, and all teams below them. In each team the user has the
// highest role of this team and the teams above it.
type Teams struct {
	// Enabled is true when the deployment has any team. Only then do teams limit what its users see.
	Enabled bool
	rights  map[int64]TeamRight
}

// Right returns what the user may do in a team; 0 for a team that the user is not in.
func (t *Teams) Right(teamID int64) TeamRight { return t.rights[teamID] }

// IDs returns the teams in which the user has at least this right, sorted.
func (t *Teams) IDs(least TeamRight) []int64 {
	ids := slices.Sorted(maps.Keys(t.rights))
	return slices.DeleteFunc(ids, func(id int64) bool { return t.rights[id] < least })
}

// teamsSQL descends from the teams of a user to all teams below. The row of team 0 reports that the deployment has
// teams.
const teamsSQL = `WITH RECURSIVE mine (team_id, may) AS (
	SELECT team_id, CASE role WHEN 'TEAM_ROLE_MANAGER' THEN 3 WHEN 'TEAM_ROLE_MEMBER' THEN 2 ELSE 1 END
	FROM team_members WHERE deployment_id = $1 AND user_id = $2
	UNION
	SELECT teams.id, mine.may FROM mine JOIN teams ON teams.deployment_id = $1 AND teams.parent_id = mine.team_id
)
SELECT team_id, MAX(may) FROM mine GROUP BY team_id
UNION ALL
SELECT 0, 0 WHERE EXISTS (SELECT 1 FROM teams WHERE deployment_id = $1)`

// TeamsOf reads the teams of a user with one query. db is an ent client or transaction.
func TeamsOf(ctx context.Context, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, deploymentID, userID int64,
) (*Teams, error) {
	rows, err := db.QueryContext(ctx, teamsSQL, deploymentID, userID)
	if err != nil {
		return nil, fmt.Errorf("look up the teams of user %d: %w", userID, err)
	}
	defer rows.Close()
	teams := &Teams{rights: map[int64]TeamRight{}}
	for rows.Next() {
		var id int64
		var right TeamRight
		if err := rows.Scan(&id, &right); err != nil {
			return nil, fmt.Errorf("look up the teams of user %d: %w", userID, err)
		}
		if id == 0 {
			teams.Enabled = true
			continue
		}
		teams.rights[id] = right
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look up the teams of user %d: %w", userID, err)
	}
	return teams, nil
}
