// Applies the theme that the visitor chose before anything is drawn. Without a choice, or if the browser does not
// store it, the system's theme applies.
try {
  const chosen = localStorage.getItem("theme")
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen
} catch {
  // Storage is denied: there is no stored choice.
}
