import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Relative: the page does not care under which path it is served.
  base: './',
  plugins: [react()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // The page's policy allows no data: scripts and styles, and an asset is cached for good by its hash.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
