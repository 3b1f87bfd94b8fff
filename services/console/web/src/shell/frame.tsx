import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { BookOpenText, Bug, ChartNoAxesColumn, CircleUser, FolderGit2, Keyboard, Radar, Rocket } from "lucide-react";
import { Suspense } from "react";
import { basePath } from "@/api/base";
import { deploymentsQuery, useDeployment, userQuery } from "@/api/session";
import { IconButton } from "@/parts/button";
import { useKeyHelp, useKeys } from "@/parts/keys";
import { Menu, MenuChoice, MenuItem, MenuLabel, MenuLine } from "@/parts/menu";
import { Loading } from "@/parts/states";
import * as texts from "@/texts";
import { type Theme, useTheme } from "./theme";

const { nav, account, theme: themeTexts, keys } = texts.shell;

const screens = [
  { to: "/$org/triage", text: nav.triage, Icon: Bug, key: "g t" },
  { to: "/$org/scans", text: nav.scans, Icon: Radar, key: "g s" },
  { to: "/$org/projects", text: nav.projects, Icon: FolderGit2, key: "g p" },
  { to: "/$org/overview", text: nav.overview, Icon: ChartNoAxesColumn, key: "g o" },
  { to: "/$org/setup", text: nav.setup, Icon: Rocket, key: "g u" },
  { to: "/$org/api", text: nav.api, Icon: BookOpenText, key: "g a" },
] as const;

/** The navigation beside the screen: a column at the left, or a bar at the lower edge of a phone. */
export function Frame() {
  const deployment = useDeployment();
  const navigate = useNavigate();
  const help = useKeyHelp();
  const org = deployment.slug ?? "";
  useKeys(keys.goTo, [
    ...screens.map(({ to, text, key }) => ({ key, text, run: () => void navigate({ to, params: { org } }) })),
    { key: "?", text: keys.help, run: help },
  ]);
  return (
    <div className="flex h-dvh flex-col-reverse md:flex-row print:block print:h-auto">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-accent focus:p-2 focus:text-accent-ink">
        {texts.shell.skipToContent}
      </a>
      <nav aria-label={nav.label} className="flex shrink-0 border-line bg-surface max-md:border-t md:w-48 md:flex-col md:border-r md:py-3 print:hidden">
        <div className="flex items-center gap-2 px-4 pb-3 max-md:hidden">
          <img src={`${basePath}/console/icon.svg`} alt="" className="size-6" />
          <span className="truncate font-semibold">{deployment.displayName || texts.shell.product}</span>
        </div>
        <ul className="flex grow max-md:justify-around md:flex-col md:gap-0.5 md:px-2">
          {screens.map(({ to, text, Icon }) => (
            <li key={to}>
              <Link
                to={to}
                params={{ org }}
                className="flex items-center gap-2.5 rounded-md text-muted hover:bg-sunken hover:text-ink max-md:min-h-13 max-md:flex-col max-md:justify-center max-md:gap-0.5 max-md:px-2 max-md:text-2xs md:min-h-8 md:px-2"
                activeProps={{ className: "!text-accent md:bg-accent-soft font-medium", "aria-current": "page" }}
              >
                <Icon size={17} aria-hidden />
                {text}
              </Link>
            </li>
          ))}
        </ul>
        <div className="flex items-center gap-1 px-2">
          <span className="max-md:hidden"><IconButton label={keys.help} onClick={help}><Keyboard size={17} aria-hidden /></IconButton></span>
          <AccountMenu />
        </div>
      </nav>
      <main id="content" tabIndex={-1} className="min-h-0 min-w-0 grow overflow-y-auto outline-none print:overflow-visible">
        <Suspense fallback={<Loading />}>
          <Outlet />
        </Suspense>
      </main>
    </div>
  );
}

function AccountMenu() {
  const [theme, setTheme] = useTheme();
  const { data: user } = useQuery(userQuery);
  const { data: deployments } = useSuspenseQuery(deploymentsQuery);
  const current = useDeployment();
  const navigate = useNavigate();
  const themes: Theme[] = ["system", "light", "dark"];
  return (
    <Menu trigger={<IconButton label={account.label}><CircleUser size={18} aria-hidden /></IconButton>}>
      <MenuLabel>{user?.email || user?.name || account.label}</MenuLabel>
      <MenuItem onSelect={() => void navigate({ to: "/$org/integrations", params: { org: current.slug ?? "" } })}>{account.integrations}</MenuItem>
      <MenuItem onSelect={() => void navigate({ to: "/$org/sessions", params: { org: current.slug ?? "" } })}>{account.sessions}</MenuItem>
      {deployments.length > 1 && (
        <>
          <MenuLine />
          <MenuLabel>{account.deployments}</MenuLabel>
          {deployments.map((one) => (
            <MenuChoice key={one.id} checked={one.id === current.id} onSelect={() => void navigate({ to: "/$org/triage", params: { org: one.slug ?? "" } })}>
              {one.displayName}
            </MenuChoice>
          ))}
        </>
      )}
      <MenuLine />
      <MenuLabel>{themeTexts.label}</MenuLabel>
      {themes.map((one) => (
        <MenuChoice key={one} checked={theme === one} onSelect={() => setTheme(one)}>{themeTexts[one]}</MenuChoice>
      ))}
      <MenuLine />
      <MenuItem onSelect={() => void signOut()}>{account.signOut}</MenuItem>
    </Menu>
  );
}

async function signOut(): Promise<void> {
  await fetch(`${basePath}/auth/logout`, { method: "POST" });
  window.location.assign(`${basePath}/console/sign-in`);
}
