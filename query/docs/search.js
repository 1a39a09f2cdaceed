// Searches the pages of the documentation and the operations of the API, section by section, for all words that are
// typed. The index is asked for with the first of them.
'use strict';

const shown = 20;
let sections;

const index = async () => {
  sections ??= fetch('/docs/search.json').then((answer) => answer.json()).catch((error) => { sections = undefined; throw error; });
  return sections;
};

// excerpt is the text around the first of the words.
const excerpt = (text, word) => {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
  return (at > 0 ? '… ' : '') + text.slice(at, at + 160) + (at + 160 < text.length ? ' …' : '');
};

const line = (text) => {
  const item = document.createElement('li');
  item.append(text);
  return item;
};

const search = async (typed) => {
  const found = document.getElementById('found');
  const words = typed.toLowerCase().split(/\s+/).filter((word) => word !== '');
  if (words.length === 0) return found.replaceChildren();
  let all;
  try { all = await index(); } catch (error) { return found.replaceChildren(line(`The index could not be read: ${error.message}`)); }
  if (typed !== document.getElementById('search').value) return undefined;
  const holds = (text) => words.every((word) => text.toLowerCase().includes(word));
  const hits = all.filter((section) => holds(`${section.page} ${section.title} ${section.text}`));
  // First the sections whose title has the words, then those whose text has them as one phrase.
  const phrase = words.join(' ');
  const rank = (section) => 2 * holds(section.title) + section.text.toLowerCase().includes(phrase);
  hits.sort((a, b) => rank(b) - rank(a));
  found.replaceChildren(...hits.slice(0, shown).map((section) => {
    const link = document.createElement('a');
    link.href = section.path;
    link.textContent = section.title === section.page ? section.page : `${section.page}: ${section.title}`;
    const item = line(link);
    item.append(' ', excerpt(section.text, words[0]));
    return item;
  }), ...(hits.length === 0 ? [line('Nothing is found.')] : hits.length > shown ? [line(`${hits.length - shown} more: another word narrows it.`)] : []));
  return undefined;
};

document.getElementById('search').addEventListener('input', (event) => search(event.target.value));
document.querySelector('[role=search]').addEventListener('submit', (event) => event.preventDefault());
