
(() => {
  'use strict';
  const root = document.documentElement;
  const theme = document.getElementById('theme');
  const fold = document.getElementById('fold');
  const told = document.getElementById('told');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const folds = () => [...document.querySelectorAll('main details')];
  root.classList.add('js');

  const remember = (value) => { try { localStorage.setItem('parity-theme', value); } catch { /* private mode */ } };
  const recall = () => { try { return localStorage.getItem('parity-theme'); } catch { return null; } };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const show = () => {
    theme.textContent = isDark() ? 'Light' : 'Dark';
    fold.textContent = folds().every((item) => item.open) ? 'Close all' : 'Open all';
    fold.hidden = folds().length === 0;
  };
  if (recall() === 'dark' || recall() === 'light') root.dataset.theme = recall();
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    remember(root.dataset.theme);
    show();
  });
  system.addEventListener('change', show);
  fold.addEventListener('click', () => {
    const open = !folds().every((item) => item.open);
    folds().forEach((item) => { item.open = open; });
    show();
  });

  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* asked below in the old way */ }
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  };
  document.querySelectorAll('.copy').forEach((button) => button.addEventListener('click', async () => {
    const done = await copied(button.closest('.snippet').querySelector('code').textContent);
    button.textContent = done ? 'Copied' : 'Select it';
    told.textContent = done ? 'copied' : 'could not copy';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  }));

  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener('hashchange', reveal);
  let closed = [];
  addEventListener('beforeprint', () => {
    closed = folds().filter((item) => !item.open);
    closed.forEach((item) => { item.open = true; });
  });
  addEventListener('afterprint', () => closed.forEach((item) => { item.open = false; }));
  show();
  reveal();
})();
