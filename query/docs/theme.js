// The theme that the visitor chose on any page, before anything is drawn, and the choice itself.
'use strict';

const stored = () => {
  try { return localStorage.getItem('theme'); } catch { return null; }
};

const apply = (theme) => {
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
};

apply(stored());
addEventListener('DOMContentLoaded', () => {
  const select = document.getElementById('theme');
  select.value = document.documentElement.dataset.theme ?? 'system';
  select.addEventListener('change', () => {
    apply(select.value);
    try {
      if (select.value === 'system') localStorage.removeItem('theme');
      else localStorage.setItem('theme', select.value);
    } catch { /* The browser keeps nothing: the choice holds until the page is left. */ }
  });
});
