import { useState } from "react";

export type Theme = "system" | "light" | "dark";

const storageKey = "palisade-theme";

function stored(): Theme {
  const theme = document.documentElement.dataset.theme;
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** The chosen theme, and a function that changes it. "system" follows the system's setting. See public/theme.js. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(stored);
  return [
    theme,
    (next) => {
      if (next === "system") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = next;
      try {
        if (next === "system") localStorage.removeItem(storageKey);
        else localStorage.setItem(storageKey, next);
      } catch {
        // Storage is blocked: the choice lasts until the page is closed.
      }
      setTheme(next);
    },
  ];
}
