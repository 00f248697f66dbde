// What is wrong with a page for people who do not see it, or not well: one line each.
(() => {
  const problems = [];
  const shown = (node) => {
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    return style.visibility === 'visible' && style.display !== 'none' && box.width > 1 && box.height > 1
      && !node.closest('[aria-hidden="true"]') && Number(style.opacity) > 0.1;
  };
  const say = (node) => node.outerHTML.slice(0, 120);
  const modal = document.querySelector('dialog[open]');
  const all = [...(modal ?? document.body).querySelectorAll('*')];
  const name = (node) => node.getAttribute('aria-label')
    || (node.getAttribute('aria-labelledby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent ?? '').join(' ').trim()
    || [...(node.labels ?? [])].map((label) => label.textContent.trim()).join(' ')
    || (['INPUT', 'SELECT', 'VIDEO'].includes(node.tagName) ? '' : node.textContent.trim()) || node.getAttribute('alt') || node.getAttribute('title');
  for (const node of all) {
    if (node.matches('a[href], button, input, select, video, [role=slider], [role=img], dialog') && shown(node) && !name(node)) problems.push('no name: ' + say(node));
    if (node.tagName === 'IMG' && !node.hasAttribute('alt')) problems.push('no alt: ' + say(node));
    if (node.id && document.querySelectorAll('#' + CSS.escape(node.id)).length > 1) problems.push('id twice: ' + node.id);
    if (Number(node.getAttribute('tabindex')) > 0) problems.push('tabindex: ' + say(node));
    // WCAG 2.2, success criterion 2.5.8.
    if (node.matches('a[href], button, input, select, [role=slider]') && shown(node)) {
      const box = node.getBoundingClientRect();
      const label = node.labels?.[0]?.getBoundingClientRect();
      if (Math.max(box.height, label?.height ?? 0) < 24 || box.width < 24) problems.push(`target ${Math.round(box.width)} by ${Math.round(box.height)}: ` + say(node));
    }
  }
  for (const list of document.querySelectorAll('[role=list]')) {
    for (const child of list.querySelectorAll(':scope > *')) {
      if (child.tagName !== 'LI' && !['listitem', 'presentation'].includes(child.getAttribute('role'))) problems.push('no item: ' + say(child));
    }
  }
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const colour = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255]; };
  const over = (top, below) => top.slice(0, 3).map((value, index) => value * top[3] + below[index] * (1 - top[3])).concat(1);
  const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  for (const node of all) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !(shown(node) || node.closest('.badge, .label')) || node.closest(':disabled') || node.matches('.hidden')) continue;
    // Over a picture of any colour.
    const plate = node.closest('.badge, .label, .peek span, .zoom');
    if (plate) {
      const style = getComputedStyle(plate);
      const last = style.backgroundImage.match(/rgba?\([^)]*\)/g)?.at(-1) ?? style.backgroundColor;
      for (const picture of [[255, 255, 255, 1], [0, 0, 0, 1]]) {
        const [a, b] = [light(over(colour(style.color), picture)), light(over(colour(last), picture))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) problems.push(`contrast over a picture ${((a + 0.05) / (b + 0.05)).toFixed(2)}: ` + say(node));
      }
      continue;
    }
    let back = [255, 255, 255, 1];
    const chain = [];
    let isPicture = false;
    for (let at = node; at; at = at.parentElement) { chain.unshift(at); if (getComputedStyle(at).backgroundImage !== 'none') isPicture = true; }
    if (isPicture) continue;
    for (const at of chain) back = over(colour(getComputedStyle(at).backgroundColor), back);
    const front = over(colour(getComputedStyle(node).color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(getComputedStyle(node).fontSize), bold = Number(getComputedStyle(node).fontWeight) >= 700;
    if (ratio < (size >= 24 || (size >= 18.66 && bold) ? 3 : 4.5)) problems.push(`contrast ${ratio.toFixed(2)}: ` + say(node));
  }
  const headings = [...document.querySelectorAll('h1')].filter((node) => shown(node) && node.textContent.trim());
  if (!modal && headings.length !== 1) problems.push(`${headings.length} headings of the first level`);
  if (!document.title) problems.push('no title');
  if (!document.documentElement.lang) problems.push('no language');
  return problems;
})()
