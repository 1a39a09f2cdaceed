// The theme that the visitor chose, before anything is drawn. Without a choice, or a browser that keeps one, the system's
// holds.
try {
  const chosen = localStorage.getItem("theme")
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen
} catch {
  // Storage is refused: there is no choice to follow.
}
