package store

import "testing"

// TestSyncedProjectsStayBound: projects that a synchronization has created stay bound to their repository. Projects
// that only uploads have named are not bound.
func TestSyncedProjectsStayBound(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, o Options) {
		st := openMigrated(t, o)
		goBack(t, st, 20261124000000)
		execute(t, st.writerDB,
			"INSERT INTO projects (deployment_id, name, name_key, url, scm_type, created_at) VALUES (1, 'synced', 'synced', 'https://git.acme.test/a', 'SCM_TYPE_GITLAB', 1)",
			"INSERT INTO projects (deployment_id, name, name_key, url, created_at) VALUES (1, 'uploaded', 'uploaded', 'https://git.acme.test/b', 1)")
		if _, err := st.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"synced": "https://git.acme.test/a sync", "uploaded": " "} {
			if got := one[string](t, st.readerDB, "SELECT repository_url || ' ' || bound_by FROM projects WHERE name = '"+name+"'"); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}
